/** Asking again: for another answer, in other words, or after an error. */
import type { Chat } from "@ai-sdk/react";
import type { FileUIPart, UIMessage } from "ai";
import { useCallback } from "react";
import { type ChatsApi, isDisconnect, refusalOf } from "./api.ts";
import { hasAnswersToSend } from "./chat.ts";
import { hasMovedOn } from "./record.ts";

export function useAskAgain({ api, chat }: { api: ChatsApi; chat: Chat<UIMessage> }) {
  /** The AI SDK takes messages back at once. Where the server refuses that, they are shown again. */
  const restoreIfRefused = useCallback(
    async (ask: () => Promise<void>) => {
      const before = chat.messages;
      await ask();
      if (chat.error !== undefined && refusalOf(chat.error) !== undefined) chat.messages = before;
    },
    [chat],
  );

  const regenerate = useCallback(
    (messageId: string) => void restoreIfRefused(() => chat.regenerate({ messageId })),
    [restoreIfRefused, chat],
  );

  const edit = useCallback(
    (messageId: string, text: string) => {
      const parts = chat.messages.find((message) => message.id === messageId)?.parts ?? [];
      const files = parts.filter((part): part is FileUIPart => part.type === "file");
      void restoreIfRefused(() => chat.sendMessage({ text, files, messageId }));
    },
    [restoreIfRefused, chat],
  );

  const retry = useCallback(async () => {
    const { error } = chat;
    chat.clearError();
    if (error !== undefined && isDisconnect(error)) {
      // The server may have got the turn, and may still run it or have ended it.
      await chat.resumeStream();
      if (chat.error !== undefined) return;
      if (await showRecordedAnswer(api, chat)) return;
    }
    await (hasAnswersToSend(chat) ? chat.sendMessage() : chat.regenerate());
  }, [api, chat]);

  return { regenerate, edit, retry };
}

/** Whether the record has an answer to the person's last message. If so, the page shows it. */
async function showRecordedAnswer(api: ChatsApi, chat: Chat<UIMessage>): Promise<boolean> {
  const record = await api.history(chat.id).then(
    ({ messages }) => messages,
    (): UIMessage[] => [],
  );
  const asked = chat.messages.findLast(({ role }) => role === "user")?.id;
  const isAnswered = record.at(-1)?.role === "assistant" && record.some(({ id }) => id === asked);
  if (isAnswered && hasMovedOn(chat.messages, record)) chat.messages = record;
  return isAnswered;
}
