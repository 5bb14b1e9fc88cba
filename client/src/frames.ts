/** The frames of a live session, as in `docs/reference/websocket.md` of adk-stream-protocol. */
import type { UIMessage, UIMessageChunk } from "ai";
import { decodeBase64 } from "./base64.ts";

/** The request id of every frame that is ours and not the AI SDK's. */
export const OWN = "-";

/** With this subprotocol voice travels in binary frames. */
export const BINARY_PROTOCOL = "adk-stream.v1";

export const DEFAULT_AUDIO_RATE = 24_000;

export interface RequestFields {
  id: string;
  headers: Record<string, string>;
  body: object;
  metadata: unknown;
}

export interface SendFrame extends RequestFields {
  type: "send";
  requestId: string;
  trigger: "submit-message" | "regenerate-message";
  messageId: string | undefined;
  messages: UIMessage[];
}

export interface ResumeFrame extends RequestFields {
  type: "resume";
  requestId: string;
  lastSequence: number | undefined;
}

export interface ServerFrame {
  type: string;
  requestId: string;
  [field: string]: unknown;
}

/** What the server tells besides the answers to requests, and what becomes of the connection. */
export type LiveEvent =
  | { type: "attached"; id: string }
  | { type: "turn"; id: string; messageId: string; userMessageId?: string }
  | { type: "transcript"; id: string; role: "user" | "assistant"; messageId: string; text: string; final: boolean }
  /** 16-bit little-endian mono samples of the model's voice. */
  | { type: "audio"; id: string | undefined; rate: number; pcm: ArrayBuffer }
  /** Drop what has not been played yet. */
  | { type: "audio-clear"; id: string | undefined }
  /** Who speaks in this chat: nobody, this client, or another one, whose name is told if it has one. */
  | { type: "voice"; id: string; owner: "you" | "other" | null; name?: string }
  /** One of our own frames (`attach`, `audio`, ...) was refused. */
  | { type: "error"; code: string; message: string }
  | { type: "connection"; state: "open" | "lost" };

export type LiveListener = (event: LiveEvent) => void;

export function parseFrame(text: string): ServerFrame | undefined {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(frame) || typeof frame.type !== "string" || typeof frame.requestId !== "string") return undefined;
  return frame as ServerFrame;
}

/** The event that one of the server's own frames stands for; undefined if the frame is unknown or lacks something. */
export function readEvent(frame: ServerFrame): LiveEvent | undefined {
  const text = (field: string) => (typeof frame[field] === "string" ? (frame[field] as string) : undefined);
  const id = text("id");
  const messageId = text("messageId");
  switch (frame.type) {
    case "attached":
      return id === undefined ? undefined : { type: "attached", id };
    case "turn":
      if (id === undefined || messageId === undefined) return undefined;
      return { type: "turn", id, messageId, userMessageId: text("userMessageId") };
    case "transcript": {
      const spoken = text("text");
      const role = text("role");
      if (id === undefined || messageId === undefined || spoken === undefined) return undefined;
      if (role !== "user" && role !== "assistant") return undefined;
      return { type: "transcript", id, role, messageId, text: spoken, final: frame.final === true };
    }
    case "audio": {
      const pcm = decodeBase64(text("data") ?? "");
      return pcm === undefined || pcm.byteLength === 0 ? undefined : { type: "audio", id, rate: audioRate(frame), pcm };
    }
    case "voice": {
      const owner = frame.owner === "you" || frame.owner === "other" ? frame.owner : null;
      return id === undefined ? undefined : { type: "voice", id, owner, name: text("name") };
    }
    case "audio-clear":
      return { type: "audio-clear", id };
    case "error":
      return { type: "error", code: text("code") ?? "internal", message: text("message") ?? "" };
    default:
      return undefined;
  }
}

export function audioRate(frame: ServerFrame): number {
  return typeof frame.rate === "number" && frame.rate > 0 ? frame.rate : DEFAULT_AUDIO_RATE;
}

export function isChunk(value: unknown): value is UIMessageChunk {
  return isRecord(value) && typeof value.type === "string";
}

/** A segment ends with exactly one of these; nothing but `end` comes after it. */
export function isLastChunk({ type }: UIMessageChunk): boolean {
  return type === "finish" || type === "abort" || type === "error";
}

const CHUNKS_OF_5 = new Set([
  ...["start", "finish", "message-metadata", "start-step", "finish-step", "abort", "error", "file"],
  ...["text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end"],
  ...["source-url", "source-document", "tool-input-start", "tool-input-delta", "tool-input-available"],
  ...["tool-input-error", "tool-output-available", "tool-output-error"],
]);

/** Whether `ai@5` knows this type of chunk. 6 and 7 skip what they do not know. */
export function isKnownTo5({ type }: UIMessageChunk): boolean {
  return CHUNKS_OF_5.has(type) || type.startsWith("data-");
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
