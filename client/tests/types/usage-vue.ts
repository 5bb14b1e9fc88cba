/** The same for Vue, whose newest release is one for `ai@7`. */
import { bindChat, LiveChatTransport, runPendingCalls } from "adk-stream-client";
import { Chat, useChat } from "@ai-sdk/vue";
import type { UIMessage } from "ai";

const transport = new LiveChatTransport({ url: "/api/chat/live" });
const chat = new Chat<UIMessage>({ transport });
const composable = useChat({ transport });

export const ends: (() => void)[] = [bindChat(chat, transport), bindChat(composable, transport)];
void runPendingCalls(composable, () => 1);
