/** The trace of a turn: what the agent did in each step, in its order, and when, as far as this page was there. */
import type { UIMessage } from "ai";
import { adkMetadata, type Part, toolPart } from "../conversation/parts.ts";
import { isRecord } from "../is-record.ts";
import type { Family, WireEntry } from "./log.ts";
import { familyOf, partKeys } from "./parts.ts";

export interface TraceRow {
  /** From 1: one call of the model each. 0 before the first. */
  step: number;
  name: string;
  /** In a few words. */
  about: string;
  family: Family;
  /** Other than the root agent. */
  author: string | undefined;
  /** Of an agent that runs as a tool. */
  isInner: boolean;
  partKey: string | undefined;
  /** Milliseconds since the turn was asked for; undefined for what this page has not seen coming. */
  from: number | undefined;
  to: number | undefined;
}

export interface Trace {
  rows: TraceRow[];
  /** Milliseconds from the request to its last chunk. */
  total: number | undefined;
  firstChunk: number | undefined;
  usage: Record<string, number>;
  model: string | undefined;
}

export function traceOf(message: UIMessage, entries: readonly WireEntry[]): Trace {
  const own = entries.filter((entry) => entry.messageId === message.id && entry.direction === "received");
  // A message that was streamed before the log began has its later chunks only: their times would mislead.
  const began = own.some(({ type }) => type === "start") ? (own[0]!.askedAt ?? own[0]!.at) : undefined;
  const times = began === undefined ? new Map<string, Span>() : spansOf(own, began);
  const keys = partKeys(message.parts);
  let step = 0;
  const rows = message.parts.flatMap((part, index): TraceRow[] => {
    if (part.type === "step-start") step += 1;
    const said = rowOf(part);
    if (said === undefined) return [];
    const { author, toolCallId } = adkMetadata(part);
    const partKey = keys[index];
    const { from, to } = times.get(partKey ?? "") ?? {};
    return [{ step, ...said, author, isInner: toolCallId !== undefined, partKey, from, to }];
  });
  const metadata = isRecord(message.metadata) ? message.metadata : {};
  return {
    rows,
    total: began === undefined ? undefined : own.at(-1)!.at - began,
    firstChunk: began === undefined ? undefined : own[0]!.at - began,
    usage: numbersIn(metadata.usage),
    model: typeof metadata.modelVersion === "string" ? metadata.modelVersion : undefined,
  };
}

interface Span {
  from: number;
  to: number;
}

function spansOf(entries: readonly WireEntry[], began: number): Map<string, Span> {
  const spans = new Map<string, Span>();
  for (const { partKey, at } of entries) {
    if (partKey === undefined) continue;
    const span = spans.get(partKey);
    if (span === undefined) spans.set(partKey, { from: at - began, to: at - began });
    else span.to = at - began;
  }
  return spans;
}

const MAX_ABOUT = 80;

/** Undefined for parts that say nothing about what the agent did. */
function rowOf(part: Part): Pick<TraceRow, "name" | "about" | "family"> | undefined {
  const tool = toolPart(part);
  if (tool !== undefined) {
    const hasFailed = tool.state === "output-error";
    const isAsked = tool.approval !== undefined && !tool.state.startsWith("output-");
    const words = tool.isPreliminary ? "preliminary result" : STATES[tool.state];
    const about = [words ?? tool.state, hasFailed ? tool.errorText : undefined].filter(Boolean).join(": ");
    return { name: tool.toolName, about, family: hasFailed ? "error" : isAsked ? "approval" : "tool" };
  }
  const data = "data" in part && isRecord(part.data) ? part.data : {};
  switch (part.type as string) {
    case "text":
    case "reasoning": {
      const { type, text } = part as { type: "text" | "reasoning"; text: string };
      return text === "" ? undefined : { name: type, about: shortened(text), family: type };
    }
    case "file":
    case "reasoning-file":
      return { name: "file", about: (part as { mediaType: string }).mediaType, family: "data" };
    case "data-adk-agent":
      return { name: "transfer", about: `to ${String(data.agent)}`, family: "data" };
    case "data-adk-state":
      return { name: "state", about: Object.keys(data).join(", "), family: "data" };
    case "data-adk-artifact":
      return { name: "artifact", about: `${String(data.filename)}, version ${String(data.version)}`, family: "data" };
    case "data-adk-node":
      return { name: "node", about: String(data.path), family: "data" };
    case "data-adk-auth-request":
      return { name: "consent", about: "asked for", family: familyOf(part.type) };
    case "data-adk-output":
      return { name: "output", about: shortened(JSON.stringify(data)), family: "data" };
    default:
      return undefined;
  }
}

const STATES: Record<string, string> = {
  "input-streaming": "reading arguments",
  "input-available": "running",
  "approval-requested": "waits for a decision",
  "approval-responded": "decided",
  "output-available": "completed",
  "output-denied": "denied",
  "output-error": "failed",
};

export function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > MAX_ABOUT ? `${line.slice(0, MAX_ABOUT).replace(/\p{Cs}+$/u, "")}…` : line;
}

function numbersIn(usage: unknown): Record<string, number> {
  if (!isRecord(usage)) return {};
  return Object.fromEntries(Object.entries(usage).filter((entry): entry is [string, number] => Number.isFinite(entry[1])));
}
