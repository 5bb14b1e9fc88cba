/** The `fold` command: thousands of canned streams through a release's own parser, schema and fold. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { UIMessage, UIMessageChunk } from "ai";
import { loadRelease, type Release, type ReleaseName } from "./releases.ts";
import { errorText, judgeChunks, type JudgedChunk } from "./wire.ts";

export interface FoldCommand {
  release: ReleaseName;
  /** One JSON object per line: `{"id": 1, "sse": "data: ..."}` or `{"id": 1, "chunks": [...]}`. */
  file: string;
  return?: "messages" | "errors";
}

type Entry = { id: number } & ({ sse: string } | { chunks: unknown[] });

export interface FoldAnswer {
  count: number;
  errors: { id: number; error: string }[];
  /** Over the id and the final message of every entry that folded: equal digests mean equal messages. */
  digest: string;
  messages?: { id: number; message: UIMessage | null }[];
}

export async function fold(command: FoldCommand): Promise<FoldAnswer> {
  const release = await loadRelease(command.release);
  const digest = createHash("sha256");
  const messages: FoldAnswer["messages"] = [];
  const errors: FoldAnswer["errors"] = [];
  let count = 0;
  for await (const line of createInterface({ input: createReadStream(command.file) })) {
    const entry = JSON.parse(line) as Entry;
    count += 1;
    try {
      const message = await foldStream(release, "sse" in entry ? entry.sse : encodeChunks(entry.chunks));
      digest.update(JSON.stringify([entry.id, message]));
      if (command.return === "messages") messages.push({ id: entry.id, message });
    } catch (error) {
      errors.push({ id: entry.id, error: errorText(error) });
    }
  }
  const answer: FoldAnswer = { count, errors, digest: digest.digest("hex") };
  return command.return === "messages" ? { ...answer, messages } : answer;
}

function encodeChunks(chunks: unknown[]): string {
  return chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
}

/** The message as it stands at the end of the stream; null when nothing in the stream ever wrote one. */
async function foldStream(release: Release, sse: string): Promise<UIMessage | null> {
  const stream = judgeChunks(release, sse).pipeThrough(
    new TransformStream<JudgedChunk, UIMessageChunk>({
      // As the transports do it: the first chunk that does not fit ends the response.
      transform(chunk, controller) {
        if (!chunk.success) throw chunk.error;
        controller.enqueue(chunk.value);
      },
    }),
  );
  let last: UIMessage | null = null;
  // Without `terminateOnError` every release ends the iteration silently where the fold failed.
  for await (const message of release.sdk.readUIMessageStream({ stream, terminateOnError: true })) {
    last = message;
  }
  return last;
}
