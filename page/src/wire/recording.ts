/** The log as JSON lines, in the format of `adk-stream record`: `adk-stream replay` serves them. */
import { saveFile, timeForName } from "../save-file.ts";
import type { WireEntry, WireLog } from "./log.ts";

type Line = [at: number, text: string];

export function recordingOf(log: WireLog): string {
  const lines: Line[] = [];
  const begun = new Set<number>();
  for (const entry of log.entries()) {
    if (entry.kind === "failure") continue;
    const { exchange, kind } = entry;
    // The log has already dropped the beginning of this exchange.
    if (!begun.has(exchange.number) && kind !== "request" && kind !== "open") lines.push(beginning(entry));
    begun.add(exchange.number);
    lines.push(...linesOf(entry));
  }
  // The voice of one second is one entry, though other frames came in between.
  lines.sort(([one], [other]) => one - other);
  return lines.map(([at, text]) => `{"at":${seconds(at - log.beganAt)},${text}}\n`).join("");
}

export function downloadRecording(log: WireLog): void {
  saveFile(`chat-${timeForName()}.jsonl`, "application/jsonl", recordingOf(log));
}

function beginning({ at, exchange }: WireEntry): Line {
  const { method, path } = exchange;
  const fields = method === undefined ? { direction: "open", path } : { direction: "request", method, path };
  return [at, `"exchange":${exchange.number},${inner(fields)}`];
}

function linesOf(entry: WireEntry): Line[] {
  const { at, exchange, kind, direction, raw, status, voice } = entry;
  const by = direction === "sent" ? "client" : "server";
  const line = (fields: object, more = ""): Line => [at, `"exchange":${exchange.number},${inner(fields)}${more}`];
  switch (kind) {
    case "request":
      return [line({ direction: kind, method: exchange.method, path: exchange.path }, rawField("body", raw))];
    case "response":
      return [line({ direction: kind, status }, rawField("body", raw))];
    case "chunk":
      return [line({ direction: kind }, raw === "[DONE]" ? ',"chunk":"[DONE]"' : rawField("chunk", raw))];
    case "open":
      return [line({ direction: kind, path: exchange.path })];
    case "close":
      return [line({ direction: kind, by, code: status })];
    case "frame":
      if (voice === undefined) return [line({ direction: kind, by }, rawField("frame", raw))];
      return voice.map(({ at, bytes }) => [at, line({ direction: kind, by, bytes })[1]]);
    case "failure":
      return [];
  }
}

/** The raw JSON, since JavaScript would round large numbers. Its line ends stand only between values. */
function rawField(name: string, raw: string): string {
  if (raw === "") return "";
  try {
    JSON.parse(raw);
    return `,"${name}":${raw.replaceAll(/[\r\n]+/g, " ")}`;
  } catch {
    return `,"text":${JSON.stringify(raw)}`;
  }
}

function inner(fields: object): string {
  return JSON.stringify(fields).slice(1, -1);
}

function seconds(ms: number): number {
  return Math.round(ms) / 1000;
}
