/** How much of an interrupted answer was heard, estimated from when its voice came and how long it is. */
import type { LiveChatTransport } from "adk-stream-client";
import { useCallback, useEffect, useRef, useState } from "react";

const BYTES_PER_SAMPLE = 2;
/** The player waits this long before the first sound. */
const PLAYER_DELAY_MS = 80;
const NOTHING_SAID = { beganAt: -Infinity, lengthMs: 0 };

export function useSpokenShare(live: Pick<LiveChatTransport, "listen">, currentAnswer: () => string | undefined) {
  const [shares, setShares] = useState<ReadonlyMap<string, number>>(new Map());
  const voice = useRef(NOTHING_SAID);
  useEffect(
    () =>
      live.listen((event) => {
        const now = performance.now();
        const said = voice.current;
        if (event.type === "audio") {
          if (now > said.beganAt + said.lengthMs) voice.current = { beganAt: now + PLAYER_DELAY_MS, lengthMs: 0 };
          voice.current.lengthMs += (event.pcm.byteLength / BYTES_PER_SAMPLE / event.rate) * 1000;
        } else if (event.type === "audio-clear") {
          const answer = currentAnswer();
          const share = (now - said.beganAt) / said.lengthMs;
          if (answer !== undefined && share < 1) setShares((known) => new Map(known).set(answer, Math.max(0, share)));
          voice.current = NOTHING_SAID;
        }
      }),
    [live, currentAnswer],
  );
  return useCallback((messageId: string) => shares.get(messageId), [shares]);
}
