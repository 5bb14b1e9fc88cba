/** For tests: an open chat, and a server that does what the test says. */
import { cleanup, renderHook } from "@testing-library/react";
import type { UIMessage } from "ai";
import { afterEach, beforeEach, vi } from "vitest";
import { WireLog } from "../wire/log.ts";
import { ChatsApi } from "./api.ts";
import { useConversation } from "./useConversation.ts";

const API = "https://example.test/api/chat";
export type Chunk = Record<string, unknown>;

interface Answer {
  id: string;
  /** None where another server streams it. */
  body?: ReadableStream<Uint8Array>;
}

/** A server whose record and answers are what the test says. */
class Server {
  readonly asked: string[] = [];
  readonly bodies: { messages: UIMessage[]; messageId?: string; trigger: string }[] = [];
  record: UIMessage[] = [];
  /** The answer that runs: the record leaves it out, and names it. */
  running: Answer | undefined;
  /** An answer that has just ended: who knows its id can still read it. */
  ended: Answer | undefined;
  turns: (() => Response)[] = [];

  readonly fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const method = init?.method ?? "GET";
    const path = String(input).slice(API.length);
    this.asked.push(`${method} ${path}`);
    if (path.endsWith("/messages")) {
      const headers = this.running === undefined ? undefined : { "x-adk-running": this.running.id };
      return Response.json(this.record, { headers });
    }
    const [, asked] = path.split("/stream");
    const named = [this.running, this.ended].find((answer) => answer && asked === `?message=${answer.id}`);
    const answered = asked === "" ? this.running : named;
    if (answered?.body !== undefined) return stream(answered.body);
    if (method !== "POST" || path.endsWith("/stop")) return new Response(null, { status: 204 });
    this.bodies.push(JSON.parse(String(init?.body)));
    const answerTurn = this.turns.shift();
    if (answerTurn === undefined) throw new Error("nobody expected this turn");
    return answerTurn();
  };
}

export function stream(body: ReadableStream<Uint8Array>): Response {
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

function eventStream(...chunks: Chunk[]): ReadableStream<Uint8Array> {
  const text = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
  return new Response(`${text}data: [DONE]\n\n`).body!;
}

export const turn =
  (...chunks: Chunk[]) =>
  () =>
    stream(eventStream(...chunks));
export const words = (id: string, text: string): Chunk[] => [
  { type: "start", messageId: id },
  { type: "start-step" },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: text },
  { type: "text-end", id: "t" },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop" },
];
export const answer = (id: string, text: string): Answer => ({ id, body: eventStream(...words(id, text)) });

export const asking: UIMessage = { id: "u1", role: "user", parts: [{ type: "text", text: "Pay" }] };
export const said = (id: string, role: "user" | "assistant", text: string): UIMessage => ({
  id,
  role,
  parts: [{ type: "text", text, state: "done" }],
});
export const waiting = (id: string, ...calls: string[]): UIMessage => ({
  id,
  role: "assistant",
  parts: [
    { type: "step-start" },
    ...calls.map((toolCallId) => ({
      type: "tool-pay" as const,
      toolCallId,
      state: "approval-requested" as const,
      input: { amount: 1 },
      approval: { id: `approval-${toolCallId}` },
    })),
  ] as UIMessage["parts"],
});

export let server: Server;
let chatNumber = 0;

beforeEach(() => {
  server = new Server();
  vi.stubGlobal("fetch", server.fetch);
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

export function open(messages: UIMessage[] = [], running?: string) {
  const history = { messages, running };
  const options = { api: new ChatsApi(API), log: new WireLog(), id: `c${++chatNumber}`, history };
  const onTurn = vi.fn();
  server.record = messages;
  return { ...renderHook(() => useConversation({ ...options, mode: "chat", onTurn })), id: options.id, onTurn };
}
