/** What went over the wire, both ways: the newest 5,000 entries. */
import { PartBook, type PartTally } from "./parts.ts";

export type Mode = "chat" | "live";
export type Family = "text" | "reasoning" | "tool" | "approval" | "audio" | "data" | "error" | "frame";

/** One HTTP request with its answer, or one socket. A recording numbers them. */
export interface Exchange {
  number: number;
  at: number;
  /** None for a socket. */
  method: string | undefined;
  /** Decoded, without the query. */
  path: string;
}

/** One binary frame; the voice in it is not kept. */
export interface VoiceFrame {
  at: number;
  bytes: number;
}

export interface WireEntry {
  seq: number;
  /** `performance.now()`. */
  at: number;
  mode: Mode;
  direction: "sent" | "received";
  chatId: string | undefined;
  messageId: string | undefined;
  partKey: string | undefined;
  /** The chunk's type, the frame's, or the HTTP method. */
  type: string;
  family: Family;
  data: unknown;
  /** As it was on the wire; empty for voice. */
  raw: string;
  /** Which line of a recording this is; `failure` is in none. */
  kind: "request" | "response" | "chunk" | "open" | "frame" | "close" | "failure";
  exchange: Exchange;
  /** When the request that this answers was sent. */
  askedAt: number | undefined;
  /** The HTTP status, or the close code of a socket. */
  status?: number;
  /** Voice in one direction becomes one entry a second, or it would drive out all others. */
  voice?: VoiceFrame[];
}

export type NewEntry = Omit<WireEntry, "seq" | "at">;

const CAPACITY = 5_000;
/** Attached files come again with every request of their chat. */
const MAX_CHARACTERS = 50_000_000;
/** Listeners draw; nobody reads faster than this. */
const NOTIFY_MS = 50;
const VOICE_ENTRY_MS = 1_000;

export class WireLog {
  readonly beganAt = performance.now();
  /** Which part each chunk builds, and how many chunks built a part, dropped ones included. */
  readonly parts = new PartBook();
  /** Signs of life in event streams. They are no chunks. */
  pings = 0;

  readonly #capacity: number;
  /** The oldest is at `#first`; what is before that has been dropped and is cut off now and then. */
  #items: WireEntry[] = [];
  #first = 0;
  #characters = 0;
  #seq = 0;
  #exchanges = 0;
  #version = 0;
  #snapshot: { version: number; entries: readonly WireEntry[] } = { version: 0, entries: [] };
  readonly #listeners = new Set<() => void>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(capacity = CAPACITY) {
    this.#capacity = capacity;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  get version(): number {
    return this.#version;
  }

  /** The same array as long as nothing is added: it is made when somebody looks, not with each chunk. */
  entries(): readonly WireEntry[] {
    if (this.#snapshot.version !== this.#version)
      this.#snapshot = { version: this.#version, entries: this.#items.slice(this.#first) };
    return this.#snapshot.entries;
  }

  part(messageId: string, partKey: string): PartTally | undefined {
    return this.parts.tally(messageId, partKey);
  }

  clear(): void {
    this.#items = [];
    this.#first = 0;
    this.#characters = 0;
    this.pings = 0;
    this.parts.clear();
    this.#changed();
  }

  newExchange(method: string | undefined, path: string): Exchange {
    this.#exchanges += 1;
    return { number: this.#exchanges, at: performance.now(), method, path };
  }

  add(entry: NewEntry): void {
    const added: WireEntry = { ...entry, seq: this.#seq, at: performance.now() };
    this.#seq += 1;
    this.#items.push(added);
    this.#characters += added.raw.length;
    while (this.#items.length - this.#first > this.#capacity || this.#isTooLarge()) this.#drop();
    if (this.#first > this.#capacity) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    if (added.messageId !== undefined && added.partKey !== undefined)
      this.parts.count(added.messageId, added.partKey, added.family, added.seq);
    this.#changed();
  }

  addVoice(entry: Omit<NewEntry, "type" | "family" | "data" | "raw" | "kind">, bytes: number): void {
    const at = performance.now();
    const open = this.#items.slice(Math.max(this.#first, this.#items.length - 2)).find((item) => {
      const isSame = item.exchange === entry.exchange && item.direction === entry.direction;
      return item.voice !== undefined && isSame && at - item.at < VOICE_ENTRY_MS;
    });
    if (open === undefined) {
      const voice = [{ at, bytes }];
      this.add({ ...entry, type: "voice", family: "audio", data: { frames: 1, bytes }, raw: "", kind: "frame", voice });
      return;
    }
    open.voice!.push({ at, bytes });
    const soFar = open.data as { frames: number; bytes: number };
    open.data = { frames: soFar.frames + 1, bytes: soFar.bytes + bytes };
    this.#changed();
  }

  addPing(): void {
    this.pings += 1;
    this.#changed();
  }

  #isTooLarge(): boolean {
    return this.#characters > MAX_CHARACTERS && this.#items.length - this.#first > 1;
  }

  #drop(): void {
    this.#characters -= this.#items[this.#first]!.raw.length;
    // Frees the entry. Its place is cut off later, with many others.
    this.#items[this.#first] = undefined as unknown as WireEntry;
    this.#first += 1;
  }

  #changed(): void {
    this.#version += 1;
    if (this.#timer !== undefined || this.#listeners.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      for (const listener of [...this.#listeners]) listener();
    }, NOTIFY_MS);
  }
}
