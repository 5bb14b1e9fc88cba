/**
 * Which part of which message a chunk builds.
 *
 * A part's key is `tool:<toolCallId>`, or its kind and its number among those of its kind in the message, from 0:
 * `text:0`, `reasoning:1`, `file:0`, `source:2`. The page counts the parts of a `UIMessage`, this counts chunks, and
 * both come to the same.
 */
import type { UIMessage } from "ai";
import { isRecord } from "../is-record.ts";
import type { Family } from "./log.ts";

/** No more ticks than this are drawn. */
const MAX_TICKS = 60;

export interface PartTally {
  count: number;
  /** The families of the first chunks, as many as are drawn. */
  families: Family[];
  /** The number of the first chunk. A message that is streamed again begins anew. */
  firstSeq: number;
}

/** A message that a request continues: some of its parts are there already. */
export interface Continued {
  id: string;
  counts: Map<string, number>;
}

type Fields = Record<string, unknown>;

/** The keys of a message's parts, in their order; none for parts that have no chunks of their own. */
export function partKeys(parts: readonly { type: string }[]): (string | undefined)[] {
  const counts = new Map<string, number>();
  return parts.map((part) => {
    if (part.type.startsWith("tool-") || part.type === "dynamic-tool")
      return `tool:${(part as unknown as { toolCallId: string }).toolCallId}`;
    const kind = kindOf(part.type);
    return kind === undefined ? undefined : nextKey(counts, kind);
  });
}

/** The assistant's message that a request with this body continues, if it continues one. */
export function continuedMessage(body: unknown): Continued | undefined {
  if (!isRecord(body)) return undefined;
  const messages = (Array.isArray(body.messages) ? body.messages : [body.message]) as (UIMessage | undefined)[];
  const message = messages.find((known) => known?.id !== undefined && known.id === body.messageId) ?? messages.at(-1);
  if (message?.role !== "assistant" || !Array.isArray(message.parts)) return undefined;
  const counts = new Map<string, number>();
  for (const { type } of message.parts) {
    const kind = kindOf(type);
    if (kind !== undefined) nextKey(counts, kind);
  }
  return { id: message.id, counts };
}

export class PartBook {
  readonly #counts = new Map<string, Map<string, number>>();
  readonly #tallies = new Map<string, Map<string, PartTally>>();

  tally(messageId: string, partKey: string): PartTally | undefined {
    return this.#tallies.get(messageId)?.get(partKey);
  }

  count(messageId: string, partKey: string, family: Family, seq: number): void {
    const parts = getOrAdd(this.#tallies, messageId, () => new Map<string, PartTally>());
    const tally = getOrAdd(parts, partKey, () => ({ count: 0, families: [], firstSeq: seq }));
    tally.count += 1;
    if (tally.families.length < MAX_TICKS) tally.families.push(family);
  }

  /** How many parts of each kind the message has so far. */
  begin(messageId: string, isAnew: boolean, continued: Continued | undefined): Map<string, number> {
    if (isAnew) {
      this.#counts.delete(messageId);
      this.#tallies.delete(messageId);
    }
    if (continued?.id === messageId) this.#counts.set(messageId, continued.counts);
    return getOrAdd(this.#counts, messageId, () => new Map<string, number>());
  }

  clear(): void {
    this.#counts.clear();
    this.#tallies.clear();
  }
}

/** The chunks of one stream, in their order. */
export class StreamReader {
  readonly #book: PartBook;
  readonly #isAnew: boolean;
  readonly #continued: Continued | undefined;
  #counts = new Map<string, number>();
  #messageId: string | undefined;
  /** Keys of parts, by the ids that chunks use for them. */
  readonly #open = new Map<string, string>();

  /** `isAnew`: the stream has the message from its start, whatever came of it before. */
  constructor(book: PartBook, isAnew: boolean, continued: Continued | undefined) {
    this.#book = book;
    this.#isAnew = isAnew;
    this.#continued = continued;
  }

  read(chunk: Fields): { messageId: string | undefined; partKey: string | undefined } {
    if (chunk.type === "start") {
      this.#messageId = text(chunk.messageId) ?? this.#continued?.id;
      if (this.#messageId !== undefined)
        this.#counts = this.#book.begin(this.#messageId, this.#isAnew, this.#continued);
    }
    return { messageId: this.#messageId, partKey: this.#partKey(chunk) };
  }

  #partKey(chunk: Fields): string | undefined {
    const type = String(chunk.type);
    const callId = text(chunk.toolCallId);
    if (callId !== undefined) {
      const key = `tool:${callId}`;
      if (typeof chunk.approvalId === "string") this.#open.set(`approval ${chunk.approvalId}`, key);
      return key;
    }
    if (type === "data-adk-approval") return this.#open.get(`approval ${String(chunk.id)}`);
    const [, kind, step] = /^(text|reasoning)-(start|delta|end)$/.exec(type) ?? [];
    if (kind === undefined) {
      const single = kindOf(type);
      return single === undefined ? undefined : nextKey(this.#counts, single);
    }
    const name = `${kind} ${String(chunk.id)}`;
    if (step === "start") this.#open.set(name, nextKey(this.#counts, kind));
    return this.#open.get(name);
  }
}

const FAMILIES: [RegExp, Family][] = [
  [/^(error|tool-(input|output)-error)$/, "error"],
  [/^(tool-approval-|tool-output-denied$|data-adk-(approval|auth-request)$)/, "approval"],
  [/^(data-pcm|audio|audio-clear|voice|transcript|interrupt|activity-start|activity-end)$/, "audio"],
  [/^text-/, "text"],
  [/^reasoning-/, "reasoning"],
  [/^tool-/, "tool"],
  [/^(data-|source-|file$)/, "data"],
];

export function familyOf(type: string): Family {
  return FAMILIES.find(([pattern]) => pattern.test(type))?.[1] ?? "frame";
}

function kindOf(type: string): string | undefined {
  if (type === "text" || type === "reasoning" || type === "file") return type;
  return type.startsWith("source-") ? "source" : undefined;
}

function nextKey(counts: Map<string, number>, kind: string): string {
  const number = counts.get(kind) ?? 0;
  counts.set(kind, number + 1);
  return `${kind}:${number}`;
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
