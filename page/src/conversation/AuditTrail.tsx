/** What was asked, decided and run of one call, as the server's audit trail has it. */
import { useState } from "react";
import { approverWords } from "./about-approval.ts";
import { type TrailLine, useActions } from "./actions.ts";
import { Marked } from "./Marked.tsx";
import { Values } from "./Values.tsx";

type Trail = { state: "closed" | "loading" | "failed" } | { state: "ready"; lines: TrailLine[] };

export function AuditTrail({ approvalId }: { approvalId: string }) {
  const { readTrail } = useActions();
  const [trail, setTrail] = useState<Trail>({ state: "closed" });
  const load = () => {
    setTrail({ state: "loading" });
    readTrail().then(
      (lines) => setTrail({ state: "ready", lines: linesOf(lines, approvalId) }),
      () => setTrail({ state: "failed" }),
    );
  };
  return (
    <details className="text-sm" onToggle={({ currentTarget }) => currentTarget.open && load()}>
      <summary className="w-fit text-ink-2 underline-offset-2 hover:underline">Audit trail</summary>
      {trail.state === "ready" ? (
        <ol className="mt-2 grid gap-1.5">
          {trail.lines.map((line, index) => (
            <Line key={index} line={line} isFirst={index === 0} />
          ))}
        </ol>
      ) : (
        trail.state !== "closed" && (
          <p role="status" className="mt-2 text-ink-2">
            {trail.state === "failed" ? "The trail could not be read." : "Reading…"}
          </p>
        )
      )}
    </details>
  );
}

/** Ids of calls repeat from turn to turn; the line that asks names the approval, and the whole key of its call. */
export function linesOf(lines: TrailLine[], approvalId: string): TrailLine[] {
  const key = ({ call }: TrailLine) => JSON.stringify(call);
  const asking = lines.find(({ approval_id: id }) => id === approvalId);
  return asking === undefined ? [] : lines.filter((line) => key(line) === key(asking));
}

function Line({ line, isFirst }: { line: TrailLine; isFirst: boolean }) {
  const at = new Date(line.at * 1_000);
  return (
    <li className="grid grid-cols-[auto_minmax(0,1fr)] items-baseline gap-x-3">
      <time dateTime={at.toISOString()} className="font-mono text-xs text-ink-2">
        {TIME.format(at)}
      </time>
      <div className="min-w-0">
        <bdi>
          <Marked text={isFirst ? askedWords(line) : lineWords(line)} />
        </bdi>
        {line.reason && (
          <bdi className="text-ink-2">
            : <Marked text={line.reason} />
          </bdi>
        )}{" "}
        <code className="font-mono text-xs text-ink-2" title={`SHA-256 of what was shown: ${line.shown_digest ?? line.digest}`}>
          {(line.shown_digest ?? line.digest).slice(0, 8)}
        </code>
        {line.replaces !== undefined && (
          <>
            <span className="text-ink-2"> instead of </span>
            <code className="font-mono text-xs text-ink-2" title={line.replaces}>
              {line.replaces.slice(0, 8)}
            </code>
            <Values value={line.payload} />
          </>
        )}
      </div>
    </li>
  );
}

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });

function askedWords({ approvers, state, by }: TrailLine): string {
  if (by === "by policy") return "the policy approved it, nobody was asked";
  if (state !== "pending" && state !== "in-chain") return STATES[state] ?? state;
  return approvers === undefined ? "asked the owner" : `asked ${approvers.map(approverWords).join(", then ")}`;
}

/** Of states that no person has decided; their `by` is the token of a run. */
const STATES: Record<string, string> = {
  claimed: "taken up by a run",
  started: "the tool has begun",
  done: "the tool has finished",
  failed: "the tool has failed",
  expired: "expired: nobody decided in time",
  withdrawn: "the model took it back",
  unknown: "a run was lost with it: what became of it is not known",
};

function lineWords({ state, by, approved, link }: TrailLine): string {
  const place = link === undefined ? "" : ` (link ${link + 1})`;
  if (state === "approved" || (state === "in-chain" && approved)) return `${by ?? "somebody"} approved${place}`;
  if (state === "denied") return `${by ?? "somebody"} denied${place}`;
  return STATES[state] ?? state;
}
