/** Arguments and results, never shortened: a person must see all of what is approved. */
import { isRecord } from "../is-record.ts";
import { Marked } from "./Marked.tsx";

export const VALUES_LOOK = "grid grid-cols-[fit-content(40%)_minmax(0,1fr)] gap-x-4 gap-y-1";

export function Values({ value }: { value: unknown }) {
  if (!isRecord(value)) return <Value value={value} />;
  return (
    <dl className={VALUES_LOOK}>
      {Object.entries(value).map(([name, entry]) => (
        <div key={name} className="contents">
          <dt className="text-ink-2">
            <Marked text={name} />
          </dt>
          <dd>
            <Value value={entry} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function Value({ value }: { value: unknown }) {
  const isPlain = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  if (isPlain)
    return (
      <bdi className="whitespace-pre-wrap">
        <Marked text={String(value)} />
      </bdi>
    );
  if (value === undefined) return null;
  return (
    <pre
      className="max-h-80 overflow-auto font-mono text-xs whitespace-pre-wrap"
      tabIndex={0}
      role="group"
      aria-label="JSON"
    >
      <Marked text={JSON.stringify(value, null, 2)} />
    </pre>
  );
}
