/** The part of a chat that is used here. A `Chat` has it, and so has what `useChat` returns in React and Vue. */
import type { UIMessage } from "ai";

/** Vue's `useChat` returns refs. */
export type MaybeRef<T> = T | { value: T };

export interface ChatLike<M extends UIMessage = UIMessage> {
  readonly id: MaybeRef<string>;
  messages: MaybeRef<M[]>;
  readonly status: MaybeRef<string>;
  setMessages?: (messages: M[] | ((messages: M[]) => M[])) => void;
}

export function read<T>(source: MaybeRef<T>): T {
  return typeof source === "object" && source !== null && "value" in source ? source.value : source;
}

export function isBusy(chat: Pick<ChatLike, "status">): boolean {
  const status = read(chat.status);
  return status === "submitted" || status === "streaming";
}

/** React's `useChat` returns what the chat was like at one rendering: its status says nothing about now. */
export function isSnapshot(chat: Pick<ChatLike, "status">): boolean {
  return typeof Object.getOwnPropertyDescriptor(chat, "status")?.value === "string";
}

export function updateMessages<M extends UIMessage>(chat: ChatLike<M>, update: (messages: M[]) => M[]): void {
  if (chat.setMessages !== undefined) chat.setMessages(update);
  else if (Array.isArray(chat.messages)) chat.messages = update(chat.messages);
  else chat.messages.value = update(chat.messages.value);
}
