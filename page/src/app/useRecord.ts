/** The server's record of a chat: how the page looks at it, and when. */
import type { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { useCallback, useEffect, useRef } from "react";
import type { ChatsApi } from "./api.ts";
import { isBusy } from "./chat.ts";
import { adoptRecord, hasMovedOn, hasOpenCalls, lacksWords, othersDecide, withApprovals } from "./record.ts";
import { resumeAnswer } from "./transports.ts";

/** How often a page with open calls looks. */
const LOOK_MS = 3_000;

/** When to look for words that another page may have got: at once, and when they have been said. */
const MISSED_WORDS_MS = [100, 1_500, 5_000];

/** Returns a function that looks at the record, and shows what the page does not have yet. */
export function useRecord({ api, chat }: { api: ChatsApi; chat: Chat<UIMessage> }): () => Promise<void> {
  const isLooking = useRef(false);
  const isUnmounted = useRef(false);

  useEffect(() => {
    isUnmounted.current = false;
    return () => {
      isUnmounted.current = true;
    };
  }, []);

  return useCallback(async () => {
    const shown = chat.messages;
    // Before the first turn there is no record.
    if (isLooking.current || shown.length === 0) return;
    // If the person says something while the record is fetched, the page is newer than the record.
    const hasNews = (record: UIMessage[]) =>
      !isUnmounted.current && chat.status === "ready" && chat.messages === shown && hasMovedOn(shown, record);
    isLooking.current = true;
    try {
      let record = await api.history(chat.id);
      if (record.running !== undefined && hasNews(record.messages)) {
        await resumeAnswer(chat, record.running);
        record = await api.history(chat.id);
      }
      // The record leaves out a running answer, so it may have less than the page shows.
      if (record.running === undefined && hasNews(record.messages)) chat.messages = adoptRecord(shown, record.messages);
    } catch {
      // The next look may succeed.
    } finally {
      isLooking.current = false;
    }
  }, [api, chat]);
}

interface WatchOptions {
  chat: Chat<UIMessage>;
  lookAtRecord(): Promise<void>;
  isWatching: boolean;
}

/** While calls are open, another tab or another person may answer them: so the page looks now and then. */
export function useOpenCallsWatch({ chat, lookAtRecord, isWatching }: WatchOptions): void {
  useEffect(() => {
    if (!isWatching) return;
    const lookIfVisible = () => {
      if (document.visibilityState === "visible" && chat.status === "ready") void lookAtRecord();
    };
    const timer = setInterval(() => hasOpenCalls(chat.messages) && lookIfVisible(), LOOK_MS);
    document.addEventListener("visibilitychange", lookIfVisible);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", lookIfVisible);
    };
  }, [isWatching, lookAtRecord, chat]);
}

/** In a live session all else comes over its socket; how far others are with a decision is in the record alone. */
export function useOthersWatch({ api, chat, isWatching }: { api: ChatsApi; chat: Chat<UIMessage>; isWatching: boolean }) {
  useEffect(() => {
    if (!isWatching) return;
    const look = async () => {
      const shown = chat.messages;
      if (document.visibilityState !== "visible" || chat.status !== "ready" || !othersDecide(shown)) return;
      const { messages } = await api.history(chat.id);
      const moved = withApprovals(shown, messages);
      if (chat.messages === shown && chat.status === "ready" && hasMovedOn(shown, moved)) chat.messages = moved;
    };
    const timer = setInterval(() => void look().catch(() => {}), LOOK_MS); // the next look may succeed
    return () => clearInterval(timer);
  }, [api, chat, isWatching]);
}

/** When two pages answer at the same moment, the agent's words may go to the other one: so the page looks for them. */
export function useMissedWords({ chat, lookAtRecord, isWatching }: WatchOptions): void {
  useEffect(() => {
    if (!isWatching) return;
    const timers = MISSED_WORDS_MS.map((ms) =>
      setTimeout(() => {
        if (!isBusy(chat) && lacksWords(chat.messages)) void lookAtRecord();
      }, ms),
    );
    return () => timers.forEach(clearTimeout);
  }, [isWatching, chat, lookAtRecord]);
}
