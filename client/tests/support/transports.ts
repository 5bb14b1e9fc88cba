import type { TestContext } from "node:test";
import type { UIMessage, UIMessageChunk } from "ai";
import { WebSocket } from "ws";
import type { LiveChatTransportOptions } from "../../src/options.ts";
import { LiveChatTransport } from "../../src/transport.ts";
import type { Peer } from "./server.ts";

export const FAST = { backoff: { firstMs: 4, maxMs: 16 } };

export function makeTransport(
  t: TestContext,
  url: string,
  options: Partial<LiveChatTransportOptions> = {},
): LiveChatTransport {
  const transport = new LiveChatTransport({ url, webSocket: WebSocket, timing: FAST, ...options });
  t.after(() => transport.close());
  return transport;
}

export function userMessage(text: string, id = "u1"): UIMessage {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

/** What `Chat` hands over for words of the user's. */
export function words(text: string, more: { abortSignal?: AbortSignal; body?: object; messages?: UIMessage[] } = {}) {
  return {
    chatId: "c1",
    trigger: "submit-message" as const,
    messageId: undefined,
    messages: [userMessage(text)],
    abortSignal: undefined,
    ...more,
  };
}

/** The answer to an approval: the assistant's message goes on. */
export function decision() {
  const part = {
    type: "tool-pay",
    toolCallId: "k",
    state: "approval-responded",
    input: {},
    approval: { id: "a", approved: true },
  };
  const asked = { id: "m1", role: "assistant", parts: [part] } as unknown as UIMessage;
  return { ...words("pay"), messageId: "m1", messages: [userMessage("pay"), asked] };
}

export async function readAll(stream: ReadableStream<UIMessageChunk>): Promise<UIMessageChunk[]> {
  const chunks: UIMessageChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** Frames keep their order, so that after one has gone there and another one back, nothing is under way any more. */
export async function roundTrip(transport: LiveChatTransport, peer: Peer): Promise<void> {
  const heard = new Promise<void>((resolve) => {
    const end = transport.listen((event) => {
      if (event.type !== "error" || event.code !== "round-trip") return;
      end();
      resolve();
    });
  });
  peer.own("error", { code: "round-trip", message: "" });
  await heard;
  transport.sendActivity("end");
  await peer.next("activity-end");
}
