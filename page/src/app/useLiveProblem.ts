/** Why the agent does not hear what is said, until it is heard again. */
import type { LiveChatTransport } from "adk-stream-client";
import { useEffect, useState } from "react";
import { NO_LIVE_MODE } from "./api.ts";

export function useLiveProblem(live: Pick<LiveChatTransport, "listen">): string | undefined {
  const [problem, setProblem] = useState<string>();
  useEffect(
    () =>
      live.listen((event) => {
        if (event.type === "error") setProblem(event.message);
        else if (event.type !== "connection" && event.type !== "attached") setProblem(undefined);
      }),
    [live],
  );
  return problem;
}

/** Whether the server has said that the agent's model has no live mode: the stream of an answer says so without a code. */
export function useNoLiveMode(live: Pick<LiveChatTransport, "listen">): boolean {
  const [hasNone, setNone] = useState(false);
  useEffect(() => live.listen((event) => event.type === "error" && event.code === NO_LIVE_MODE && setNone(true)), [live]);
  return hasNone;
}
