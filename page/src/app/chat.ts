/** The AI SDK's chat with our transport, the stock helpers, and the tools of this browser. */
import { Chat } from "@ai-sdk/react";
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from "ai";
import type { Mode, WireLog } from "../wire/log.ts";
import type { ChatsApi } from "./api.ts";
import { runBrowserCall } from "./browser-calls.ts";
import { createTransport } from "./transports.ts";

export interface ChatOptions {
  api: ChatsApi;
  log: WireLog;
  id: string;
  messages: UIMessage[];
  mode: Mode;
  /** A turn has ended, well or with an error. */
  onTurnEnd(): void;
}

/** Whether all calls of the last message are answered, and the answers are not sent yet. */
export function hasAnswersToSend(messages: { messages: UIMessage[] }): boolean {
  return (
    lastAssistantMessageIsCompleteWithApprovalResponses(messages) ||
    lastAssistantMessageIsCompleteWithToolCalls(messages)
  );
}

export function createChat({ api, log, id, messages, mode, onTurnEnd }: ChatOptions) {
  const transport = createTransport(api, log, mode);
  const chat: Chat<UIMessage> = new Chat<UIMessage>({
    id,
    messages,
    transport,
    sendAutomaticallyWhen: hasAnswersToSend,
    onToolCall: ({ toolCall }) => runBrowserCall(chat, toolCall),
    onFinish: onTurnEnd,
    onError: onTurnEnd,
  });
  return { chat, transport };
}

export function isBusy({ status }: Pick<Chat<UIMessage>, "status">): boolean {
  return status === "submitted" || status === "streaming";
}

/** Whether the chat becomes idle in this time. Chats have no event for it, so it is polled. */
export async function becomesIdle(chat: Pick<Chat<UIMessage>, "status">, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs;
  while (isBusy(chat) && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
  return !isBusy(chat);
}
