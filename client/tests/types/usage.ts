/** What users write, against the shipped types: compiled with the types of each AI SDK, and never run. */
import { bindChat, claimCall, LiveChatTransport, runPendingCalls } from "adk-stream-client";
import { VoiceSession } from "adk-stream-client/audio";
import { Chat, useChat } from "@ai-sdk/react";
import type { ChatTransport, UIMessage } from "ai";
import { WebSocket } from "ws";

type OwnMessage = UIMessage<{ model?: string }, { weather: { city: string } }>;

export const transport = new LiveChatTransport({ url: "/api/chat/live", sdkVersion: 6, webSocket: WebSocket });
export const stock: ChatTransport<UIMessage> = transport;
export const browser = new LiveChatTransport<OwnMessage>({
  url: "/api/chat/live",
  protocols: [],
  params: async () => ({ token: "t" }),
  headers: () => new Headers(),
  body: { tenant: 1 },
  webSocket: globalThis.WebSocket,
  prepareSendMessagesRequest: ({ messages, body }) => ({ messages: messages.slice(-1), body }),
});

export const chat = new Chat<UIMessage>({ transport });
export const ownChat = new Chat<OwnMessage>({ transport: browser });
export const unbind: () => void = bindChat(chat, transport);
bindChat(ownChat, browser);
void runPendingCalls(ownChat, ({ toolName, input }) => (toolName === "where" ? { input } : undefined));

export function Page() {
  const hook = useChat<OwnMessage>({
    transport: browser,
    onToolCall: ({ toolCall }) => void claimCall("chat", toolCall.toolCallId),
  });
  bindChat(hook, browser);
  void runPendingCalls(hook, async () => 1);
}

export const voice = new VoiceSession(transport, { onLevel: ({ microphone, player }) => void (microphone + player) });
