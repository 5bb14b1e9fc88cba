/** What a release itself makes of the bytes on the wire. */
import type { UIMessageChunk } from "ai";
import type { Release } from "./releases.ts";

/** One event of a stream, as the release's own parser and schema judged it. */
export type JudgedChunk =
  | { success: true; value: UIMessageChunk; rawValue: unknown }
  | { success: false; error: Error; rawValue: unknown };

export function judgeChunks(release: Release, sse: string): ReadableStream<JudgedChunk> {
  const { parseJsonEventStream, uiMessageChunkSchema } = release.sdk;
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(sse));
      controller.close();
    },
  });
  return parseJsonEventStream({ stream, schema: uiMessageChunkSchema }) as ReadableStream<JudgedChunk>;
}

/** A failed union names every variant that did not fit: tens of kilobytes after the line that says what was wrong. */
const MAX_ERROR_CHARACTERS = 1000;

export function errorText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.length > MAX_ERROR_CHARACTERS ? `${text.slice(0, MAX_ERROR_CHARACTERS)}...` : text;
}
