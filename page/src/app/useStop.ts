/** Ends the answer that is under way. */
import type { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { useCallback } from "react";
import type { ChatsApi } from "./api.ts";
import { becomesIdle } from "./chat.ts";
import type { SwitchingTransport } from "./transports.ts";

/** How long the server takes, at most, to end an answer that was interrupted. */
const INTERRUPTION_MS = 1_000;

interface StopOptions {
  api: ChatsApi;
  chat: Chat<UIMessage>;
  transport: SwitchingTransport;
  lookAtRecord(): Promise<void>;
}

export function useStop({ api, chat, transport, lookAtRecord }: StopOptions): () => Promise<void> {
  return useCallback(async () => {
    const isLive = transport.mode === "live";
    if (isLive) {
      // An interruption is enough while the model speaks, and keeps the live session. A tool at work needs more.
      transport.live.interrupt();
      if (await becomesIdle(chat, INTERRUPTION_MS)) return;
    }
    try {
      await api.stop(chat.id);
    } catch {
      // The server cannot be reached. The page at least shows no more of the answer.
    }
    await chat.stop();
    if (!isLive) await lookAtRecord();
  }, [api, chat, transport, lookAtRecord]);
}
