/** Those of our data parts that are for people. The others are for programs. */
import { ArrowRight, KeyRound } from "lucide-react";
import type { ReactNode } from "react";
import { isRecord } from "../is-record.ts";
import type { Part } from "./parts.ts";
import { webTarget } from "./safe-urls.ts";
import { humanise } from "./words.ts";

export function dataPart(part: Part): ReactNode {
  if (!("data" in part) || !isRecord(part.data)) return undefined;
  if (part.type === "data-adk-auth-request") return <ConsentCard address={part.data.authUri} />;
  if (part.type === "data-adk-agent" && typeof part.data.agent === "string")
    return <Handover agent={part.data.agent} />;
  return undefined;
}

/** The id of the call that waits for consent, if this part asks for it. A toolset asks without a call. */
export function callThatAsksConsent(part: Part): string | undefined {
  if (part.type !== "data-adk-auth-request" || !("data" in part) || !isRecord(part.data)) return undefined;
  return typeof part.data.toolCallId === "string" ? part.data.toolCallId : undefined;
}

function ConsentCard({ address }: { address: unknown }) {
  const target = webTarget(address);
  const host = target === undefined ? undefined : new URL(target).host;
  return (
    <div
      role="group"
      aria-label="Consent"
      className="grid justify-items-start gap-3 rounded-xl border border-approval-line bg-approval-paper p-4"
    >
      <h3 className="font-semibold">
        {host === undefined ? "A tool needs your consent" : `A tool needs your consent at ${host}`}
      </h3>
      {target === undefined ? (
        <p>The address is missing, or this page does not open such addresses.</p>
      ) : (
        <a
          href={target}
          target="_blank"
          rel="noopener noreferrer nofollow"
          className="inline-flex min-h-9 items-center gap-2 rounded-md bg-ink px-3.5 font-medium text-paper"
        >
          <KeyRound size={16} aria-hidden /> Give consent
          <span className="sr-only"> (opens a new tab)</span>
        </a>
      )}
    </div>
  );
}

function Handover({ agent }: { agent: string }) {
  return (
    <p className="flex items-center gap-1.5 text-sm text-ink-2">
      <ArrowRight size={14} aria-hidden /> {humanise(agent)} goes on
    </p>
  );
}
