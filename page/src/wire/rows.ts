/** What the inspector shows of the log. */
import type { Family, WireEntry, WireLog } from "./log.ts";

export interface Picked {
  messageId: string;
  partKey: string;
}

/** One line: an entry, or several of the same sort in a row. */
export interface Row {
  first: WireEntry;
  entries: WireEntry[];
}

/** Types that come by the dozen and say little each. */
const FOLDED = /(-delta|^voice|^transcript|^data-pcm|^audio)$/;

export function foldedRows(entries: readonly WireEntry[]): Row[] {
  const rows: Row[] = [];
  for (const entry of entries) {
    const row = rows.at(-1);
    if (row !== undefined && isSameSort(row.first, entry)) row.entries.push(entry);
    else rows.push({ first: entry, entries: [entry] });
  }
  return rows;
}

function isSameSort(one: WireEntry, other: WireEntry): boolean {
  if (one.type !== other.type || !FOLDED.test(one.type) || one.direction !== other.direction) return false;
  return one.exchange === other.exchange && one.messageId === other.messageId && one.partKey === other.partKey;
}

/** How many chunks or frames a row stands for. Voice is already folded in the log. */
export function countOf({ entries }: Row): number {
  return entries.reduce((sum, { voice }) => sum + (voice?.length ?? 1), 0);
}

/** The entries that built a part when it was last streamed. */
export function entriesOf(log: WireLog, { messageId, partKey }: Picked): WireEntry[] {
  const since = log.part(messageId, partKey)?.firstSeq ?? 0;
  return log
    .entries()
    .filter((entry) => entry.messageId === messageId && entry.partKey === partKey && entry.seq >= since);
}

export function countFamilies(entries: readonly WireEntry[]): Map<Family, number> {
  const counts = new Map<Family, number>();
  for (const { family, voice } of entries) counts.set(family, (counts.get(family) ?? 0) + (voice?.length ?? 1));
  return counts;
}

export function isChunk({ kind, raw }: WireEntry): boolean {
  return kind === "chunk" || (kind === "frame" && raw.startsWith('{"type":"chunk"'));
}

export interface TurnFigures {
  firstChunkMs: number | undefined;
  lastChunkMs: number | undefined;
}

/** The times of the last request that was answered with a stream. */
export function figuresOfLastTurn(entries: readonly WireEntry[]): TurnFigures {
  const last = entries.findLast((entry) => isChunk(entry) && entry.askedAt !== undefined);
  if (last?.askedAt === undefined) return { firstChunkMs: undefined, lastChunkMs: undefined };
  const first = entries.find((entry) => isChunk(entry) && entry.askedAt === last.askedAt) ?? last;
  return { firstChunkMs: first.at - last.askedAt, lastChunkMs: last.at - last.askedAt };
}

const MAX_SUMMARY = 160;

/** A row in a few words. */
export function summaryOf({ first, entries }: Row): string {
  const texts = entries.map(({ data }) => deltaOf(data));
  if (texts[0] !== undefined) return shortened(texts.join(""));
  const last = entries.at(-1) ?? first;
  if (typeof last.data === "string") return last.data === last.type ? "" : shortened(last.data);
  const fields = Object.entries(last.data ?? {}).filter(([name]) => name !== "type");
  if (last.kind === "request") return shortened(`${last.exchange.path} ${String(valueOf(fields, "trigger") ?? "")}`);
  return shortened(fields.map(([name, value]) => `${name}: ${wordsFor(value)}`).join(", "));
}

function deltaOf(data: unknown): string | undefined {
  const { delta, inputTextDelta } = (data ?? {}) as { delta?: unknown; inputTextDelta?: unknown };
  const text = delta ?? inputTextDelta;
  return typeof text === "string" ? text : undefined;
}

function valueOf(fields: [string, unknown][], name: string): unknown {
  return fields.find(([known]) => known === name)?.[1];
}

function wordsFor(value: unknown): string {
  if (typeof value === "string") return value.slice(0, MAX_SUMMARY);
  if (Array.isArray(value)) return `[${value.length}]`;
  return typeof value === "object" && value !== null ? "{…}" : String(value);
}

function shortened(text: string): string {
  return text.length > MAX_SUMMARY ? `${text.slice(0, MAX_SUMMARY)}…` : text.trimEnd();
}

const MAX_SHOWN = 2_000;

/** JSON for people, with long strings cut: a whole file in it would fill many screens. */
export function shownJson(value: unknown): string {
  const short = (_name: string, field: unknown) =>
    typeof field === "string" && field.length > MAX_SHOWN
      ? `${field.slice(0, 200)}… (${field.length.toLocaleString("en")} characters)`
      : field;
  return JSON.stringify(value, short, 2) ?? "";
}

export function shownRaw({ raw, kind, direction, exchange, status, voice }: WireEntry): string {
  const arrow = direction === "sent" ? "→" : "←";
  const text = raw.length > MAX_SHOWN ? `${raw.slice(0, MAX_SHOWN)}… (${raw.length.toLocaleString("en")})` : raw;
  const said = {
    request: `${exchange.method} ${exchange.path}\n${text}`.trimEnd(),
    response: `${status} ${text}`.trimEnd(),
    chunk: `data: ${text}`,
    open: `open ${exchange.path}`,
    close: `close ${status}`,
    frame: voice === undefined ? text : `voice, ${voice.length} frames`,
    failure: text,
  }[kind];
  return `${arrow} ${said}`;
}
