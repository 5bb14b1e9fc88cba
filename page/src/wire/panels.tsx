/** The panels of a session: the trace of a turn, the state, and the artifacts. */
import type { UIMessage } from "ai";
import { useMemo, useState } from "react";
import { FilePart } from "../conversation/FilePart.tsx";
import { Marked } from "../conversation/Marked.tsx";
import { textOf } from "../conversation/parts.ts";
import { Value } from "../conversation/Values.tsx";
import { FAMILY_COLOUR } from "./colours.ts";
import { Choice, Figure, Nothing } from "./details.tsx";
import type { WireEntry } from "./log.ts";
import type { Picked } from "./rows.ts";
import { artifacts, sessionState } from "./session.ts";
import { shortened, type TraceRow, traceOf } from "./trace.ts";

interface TraceViewProps {
  messages: UIMessage[];
  entries: readonly WireEntry[];
  picked: Picked | undefined;
  onPick(picked: Picked): void;
}

export function TraceView({ messages, entries, picked, onPick }: TraceViewProps) {
  const [chosen, setChosen] = useState<string>();
  const answers = messages.filter(({ role }) => role === "assistant");
  const message = answers.find(({ id }) => id === (chosen ?? picked?.messageId)) ?? answers.at(-1);
  const trace = useMemo(() => message && traceOf(message, entries), [message, entries]);
  if (message === undefined || trace === undefined) return <Nothing>The agent has not answered yet.</Nothing>;
  const names = new Map(answers.map(({ id }) => [id, nameOfTurn(messages, id)]));
  const { rows, total, firstChunk, usage, model } = trace;
  return (
    <>
      <Choice label="Turn to show" value={message.id} names={names} onChange={setChosen} />
      <dl className="grid grid-cols-4 gap-2 border-b border-line px-3 py-2.5">
        <Figure name="first chunk" value={duration(firstChunk)} />
        <Figure name="in all" value={duration(total)} />
        <Figure name="tokens in" value={usage.inputTokens?.toLocaleString("en") ?? "–"} />
        <Figure name="tokens out" value={usage.outputTokens?.toLocaleString("en") ?? "–"} />
      </dl>
      {model !== undefined && (
        <p className="flex items-baseline gap-2 border-b border-line px-3 py-2 text-sm text-ink-2">
          Model <span className="font-mono text-xs text-ink">{model}</span>
        </p>
      )}
      <div tabIndex={0} role="group" aria-label="Trace" className="min-h-0 flex-1 overflow-y-auto py-2">
        {bySteps(rows).map(({ step, rows }) => (
          <section key={step} aria-label={`Step ${step}`} className="mb-2">
            <h2 className="px-3 py-1 text-xs font-medium text-ink-2">Step {step}</h2>
            <ol>
              {rows.map((row, index) => (
                <Row
                  key={index}
                  row={row}
                  total={total}
                  onShow={
                    row.from === undefined || row.partKey === undefined
                      ? undefined
                      : () => onPick({ messageId: message.id, partKey: row.partKey! })
                  }
                />
              ))}
            </ol>
          </section>
        ))}
        {total === undefined && (
          <p className="px-3 text-sm text-ink-2">This page has no times of turns from before it was loaded.</p>
        )}
      </div>
    </>
  );
}

/** What it answers; its id where nobody has written anything. */
function nameOfTurn(messages: UIMessage[], id: string): string {
  const place = messages.findIndex((message) => message.id === id);
  const asked = messages.slice(0, place).findLast(({ role }) => role === "user");
  return `${place + 1}. ${(asked && shortened(textOf(asked))) || id}`;
}

function Row({ row, total, onShow }: { row: TraceRow; total: number | undefined; onShow: (() => void) | undefined }) {
  const content = (
    <>
      <span className="flex items-baseline gap-2">
        <span className={`h-3 w-1 shrink-0 self-center rounded-full ${FAMILY_COLOUR[row.family]}`} />
        <span className="shrink-0 font-mono text-xs font-medium">
          <Marked text={row.name} />
        </span>
        <span className="min-w-0 flex-1 truncate text-ink-2">
          <Marked text={row.about} />
        </span>
        <span className="shrink-0 font-mono text-xs text-ink-2">
          {row.from !== undefined && row.to !== undefined && duration(row.to - row.from)}
        </span>
      </span>
      {row.author !== undefined && <span className="block pl-3 text-xs text-ink-2">by {row.author}</span>}
      {row.from !== undefined && row.to !== undefined && total !== undefined && total > 0 && (
        <span aria-hidden className="relative mt-1 block h-1 rounded-full bg-line">
          <span
            className={`absolute inset-y-0 min-w-1 rounded-full ${FAMILY_COLOUR[row.family]}`}
            style={{ left: share(row.from, total), width: share(row.to - row.from, total) }}
          />
        </span>
      )}
    </>
  );
  const look = `block w-full px-3 py-1.5 text-left text-sm ${row.isInner ? "pl-8" : ""}`;
  return (
    <li>
      {onShow === undefined ? (
        <div className={look}>{content}</div>
      ) : (
        <button type="button" title="Show its chunks" onClick={onShow} className={`${look} hover:bg-paper-2`}>
          {content}
        </button>
      )}
    </li>
  );
}

function bySteps(rows: TraceRow[]): { step: number; rows: TraceRow[] }[] {
  const steps = new Map<number, TraceRow[]>();
  for (const row of rows) steps.set(row.step, [...(steps.get(row.step) ?? []), row]);
  return [...steps].map(([step, own]) => ({ step, rows: own }));
}

function duration(ms: number | undefined): string {
  if (ms === undefined) return "–";
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

function share(part: number, whole: number): string {
  return `${Math.min(100, (100 * part) / whole).toFixed(2)}%`;
}

export function StateView({ messages }: { messages: UIMessage[] }) {
  const entries = sessionState(messages);
  if (entries.length === 0)
    return (
      <Nothing>
        No state was sent to this page. State may hold secrets, so the application names the keys that pages may see:
        send_state of its prepare hook, or adk-stream serve --send-state KEY.
      </Nothing>
    );
  return (
    <div tabIndex={0} role="group" aria-label="Session state" className="min-h-0 flex-1 overflow-y-auto py-1 text-sm">
      <dl>
        {entries.map(({ key, value, message }) => (
          <div key={key} className="border-b border-line px-3 py-2">
            <dt className="flex justify-between gap-3">
              <span className="min-w-0 font-mono text-xs font-medium break-all">
                <Marked text={key} />
              </span>
              <span className="shrink-0 text-xs text-ink-2">message {message}</span>
            </dt>
            <dd className="mt-1">{value === null ? <span className="text-ink-2">none</span> : <Value value={value} />}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

export function ArtifactsView({ messages }: { messages: UIMessage[] }) {
  const found = artifacts(messages);
  if (found.length === 0) return <Nothing>The agent has saved no artifact in this chat.</Nothing>;
  return (
    <ul tabIndex={0} aria-label="Artifacts" className="min-h-0 flex-1 overflow-y-auto py-1 text-sm">
      {found.map(({ filename, versions }) => (
        <li key={filename} className="border-b border-line px-3 py-2">
          <h2 className="font-mono text-xs font-medium break-all">
            <Marked text={filename} />
          </h2>
          <ul>
            {versions.map(({ version, url, mediaType, message }, index) => (
              <li key={version} className="mt-2">
                <p className="mb-1 flex justify-between gap-3 text-xs text-ink-2">
                  <span>
                    Version {version}
                    {index === 0 && versions.length > 1 && ", the newest"}
                  </span>
                  <span>message {message}</span>
                </p>
                {url !== undefined && <FilePart file={{ url, mediaType: mediaType ?? "", filename }} />}
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}
