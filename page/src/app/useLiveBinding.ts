/** In live mode the chat is bound to its live session, where the server may begin turns too. */
import type { Chat } from "@ai-sdk/react";
import { bindChat, type LiveChatTransport } from "adk-stream-client";
import type { UIMessage } from "ai";
import { useCallback, useEffect, useState } from "react";
import type { Mode } from "../wire/log.ts";

interface LiveBindingOptions {
  chat: Chat<UIMessage>;
  live: LiveChatTransport;
  mode: Mode;
}

export function useLiveBinding({ chat, live, mode }: LiveBindingOptions) {
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (mode === "chat") return;
    const unbind = bindChat(chat, live);
    return () => {
      unbind();
      live.close();
    };
  }, [mode, chat, live, attempt]);
  const reconnect = useCallback(() => setAttempt((count) => count + 1), []);
  return { reconnect };
}
