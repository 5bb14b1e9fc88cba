/** The other tabs: the message that the chunks made, the request, and the raw text. */
import type { UIMessage } from "ai";
import { useState } from "react";
import type { WireEntry } from "./log.ts";
import { type Picked, shownJson, shownRaw } from "./rows.ts";

const MAX_RAW = 500;

export function MessageView({ messages, picked }: { messages: UIMessage[]; picked: Picked | undefined }) {
  const [chosen, setChosen] = useState<string>();
  const message =
    messages.find(({ id }) => id === (chosen ?? picked?.messageId)) ?? messages.at(-1);
  if (message === undefined) return <Nothing>There is no message yet.</Nothing>;
  const names = new Map(messages.map(({ id, role }, place) => [id, `${place + 1}. ${role} ${id}`]));
  return (
    <>
      <Choice label="Message to show" value={message.id} names={names} onChange={setChosen} />
      <Code label="The UIMessage">{shownJson(message)}</Code>
    </>
  );
}

const REQUESTS = new Set(["POST", "send", "resume"]);

export function RequestView({ entries }: { entries: readonly WireEntry[] }) {
  const [chosen, setChosen] = useState<string>();
  const requests = entries.filter(({ type, direction }) => direction === "sent" && REQUESTS.has(type));
  const request = requests.find(({ seq }) => String(seq) === chosen) ?? requests.at(-1);
  if (request === undefined) return <Nothing>No request was sent yet.</Nothing>;
  const names = new Map(
    requests.map(({ seq, type, exchange }, place) => [String(seq), `${place + 1}. ${type} ${exchange.path}`]),
  );
  return (
    <>
      <Choice label="Request to show" value={String(request.seq)} names={names} onChange={setChosen} />
      <Code label="The request's body">{shownJson(request.data)}</Code>
    </>
  );
}

export function RawView({ entries }: { entries: readonly WireEntry[] }) {
  if (entries.length === 0) return <Nothing>Nothing has gone over the wire yet.</Nothing>;
  return <Code label="As it was on the wire">{entries.slice(-MAX_RAW).map(shownRaw).join("\n")}</Code>;
}

export function Choice(props: { label: string; value: string; names: Map<string, string>; onChange(value: string): void }) {
  return (
    <div className="border-b border-line px-3 py-2">
      <select
        aria-label={props.label}
        value={props.value}
        onChange={(event) => props.onChange(event.target.value)}
        className="w-full rounded-md border border-line-strong bg-card px-2 py-1 font-mono text-xs"
      >
        {[...props.names].map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

function Code({ label, children }: { label: string; children: string }) {
  return (
    <pre
      tabIndex={0}
      role="region"
      aria-label={label}
      className="min-h-0 flex-1 overflow-auto p-3 font-mono text-xs whitespace-pre-wrap"
    >
      {children}
    </pre>
  );
}

export function Nothing({ children }: { children: string }) {
  return <p className="px-4 py-3 text-sm text-ink-2">{children}</p>;
}

export function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt className="text-xs text-ink-2">{name}</dt>
      <dd className="font-mono text-sm">{value}</dd>
    </div>
  );
}
