/** One chat: plain `useChat`, and what a page has to do around it. */
import { useChat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { useCallback, useEffect, useRef, useState } from "react";
import type { Mode, WireLog } from "../wire/log.ts";
import { type ChatsApi, type History, mayRetry, readableError } from "./api.ts";
import { runWaitingCalls } from "./browser-calls.ts";
import { createChat, isBusy } from "./chat.ts";
import { useAnswers } from "./useAnswers.ts";
import { useAskAgain } from "./useAskAgain.ts";
import { useLiveBinding } from "./useLiveBinding.ts";
import { useNoLiveMode } from "./useLiveProblem.ts";
import { useMissedWords, useOpenCallsWatch, useOthersWatch, useRecord } from "./useRecord.ts";
import { useResumedAnswer } from "./useResumedAnswer.ts";
import { useStop } from "./useStop.ts";

/** Nobody reads faster, and a burst of chunks costs one rendering. */
const RENDER_MS = 40;

export interface ConversationOptions {
  api: ChatsApi;
  log: WireLog;
  id: string;
  history: History;
  mode: Mode;
  /** A turn has begun or ended. */
  onTurn(): void;
}

export function useConversation({ api, log, id, history, mode, onTurn }: ConversationOptions) {
  const newestOnTurn = useRef(onTurn);
  newestOnTurn.current = onTurn;
  const tellTurn = useCallback(() => newestOnTurn.current(), []);
  // `chat` always has the present state; `shown` has the state of the last rendering.
  const [{ chat, transport }] = useState(() =>
    createChat({ api, log, id, messages: history.messages, mode, onTurnEnd: tellTurn }),
  );
  const shown = useChat<UIMessage>({ chat, experimental_throttle: RENDER_MS });
  const { status } = shown;

  useEffect(
    () => () => {
      // Leave first: over an open socket, `stop` would tell the server to end the answer.
      transport.leave(id);
      void chat.stop();
    },
    [chat, transport, id],
  );
  const { reconnect } = useLiveBinding({ chat, live: transport.live, mode });

  useEffect(() => {
    if (status === "streaming") tellTurn();
  }, [status, tellTurn]);

  const lookAtRecord = useRecord({ api, chat });
  const isResumed = useResumedAnswer({ chat, running: history.running, lookAtRecord });
  useOpenCallsWatch({ chat, lookAtRecord, isWatching: mode === "chat" && isResumed });
  useOthersWatch({ api, chat, isWatching: mode === "live" });
  useMissedWords({ chat, lookAtRecord, isWatching: isResumed && status === "ready" });
  useEffect(() => {
    if (isResumed && status === "ready") runWaitingCalls(chat);
  }, [isResumed, status, chat]);

  const answers = useAnswers({ chat, transport, status, lookAtRecord });
  const askAgain = useAskAgain({ api, chat });
  const stop = useStop({ api, chat, transport, lookAtRecord });

  const error = shown.error === undefined ? undefined : readableError(shown.error);
  const hasNoLiveMode = useNoLiveMode(transport.live);
  const isRetryable = mayRetry(shown.error, mode) && !(hasNoLiveMode && mode === "live");
  return { chat: shown, error, isRetryable, isBusy: isBusy(shown), transport, reconnect, stop, ...answers, ...askAgain };
}
