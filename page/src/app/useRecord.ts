/** Watches the server's record, for what another tab or another person has decided. */
import type { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { useCallback, useEffect, useRef } from "react";
import type { ChatsApi } from "./api.ts";
import { adoptRecord, hasMovedOn, hasOpenCalls } from "./record.ts";
import { resumeAnswer } from "./transports.ts";

const LOOK_MS = 3_000;

/** Returns how to look at it now. */
export function useRecord({ api, chat, isWatching }: { api: ChatsApi; chat: Chat<UIMessage>; isWatching: boolean }) {
  const isLooking = useRef(false);
  const isGone = useRef(false);

  const look = useCallback(async () => {
    const shown = chat.messages;
    // Before the first turn there is nothing to look at.
    if (isLooking.current || shown.length === 0) return;
    // Whatever is said meanwhile is newer than the record that was asked for.
    const hasNews = (record: UIMessage[]) =>
      !isGone.current && chat.status === "ready" && chat.messages === shown && hasMovedOn(shown, record);
    isLooking.current = true;
    try {
      let record = await api.history(chat.id);
      if (record.running !== undefined && hasNews(record.messages)) {
        await resumeAnswer(chat, record.running);
        record = await api.history(chat.id);
      }
      // Without an answer that is still being told, the record is less than what is shown.
      if (record.running === undefined && hasNews(record.messages)) chat.messages = adoptRecord(shown, record.messages);
    } catch {
      // There will be another look.
    } finally {
      isLooking.current = false;
    }
  }, [api, chat]);

  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);

  useEffect(() => {
    if (!isWatching) return;
    const lookIfVisible = () => {
      if (document.visibilityState === "visible" && chat.status === "ready") void look();
    };
    const timer = setInterval(() => hasOpenCalls(chat.messages) && lookIfVisible(), LOOK_MS);
    document.addEventListener("visibilitychange", lookIfVisible);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", lookIfVisible);
    };
  }, [isWatching, look, chat]);

  return look;
}
