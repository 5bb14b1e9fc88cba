/** What an approval is about, and what may be changed before it is given. */
import type { ReactNode } from "react";
import { browserTool } from "../tools/index.ts";
import { clockTime } from "./clock.ts";
import { isRecord } from "../is-record.ts";
import type { AboutApproval } from "./about-approval.ts";
import { ChainProgress } from "./ChainProgress.tsx";
import { InvisibleWarning, Marked } from "./Marked.tsx";
import type { ToolPart } from "./parts.ts";
import { type Changes, PayloadField, ProposedChanges } from "./ProposedChanges.tsx";
import { CardBody, CardIcon, Severity } from "./RichCard.tsx";
import { Values } from "./Values.tsx";
import { isForPeople } from "./words.ts";

export interface ApprovalDetailsProps {
  id: string;
  tool: ToolPart;
  what: string;
  about: AboutApproval;
  /** Whose browser a browser tool runs in, unless it is this one. */
  browserOf?: string;
  secondsLeft: number | undefined;
  /** Undefined when nothing can be changed any more. */
  onChanges: ((changes: Changes) => void) | undefined;
  /** Below all else. */
  more?: ReactNode;
}

export function ApprovalDetails(props: ApprovalDetailsProps) {
  const { id, tool, what, about, secondsLeft, onChanges } = props;
  const { card, chain, payload, edits } = about;
  const hint = about.hint !== undefined && isForPeople(about.hint) ? about.hint : undefined;
  const hasArguments = isRecord(tool.input) ? Object.keys(tool.input).length > 0 : tool.input != null;
  return (
    <>
      <header className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <h3 className="mr-auto font-semibold">
          <CardIcon icon={card?.icon} />
          <bdi>
            <Marked text={card?.title ?? what} />
          </bdi>{" "}
          <span className="font-normal">needs your go-ahead</span>
        </h3>
        <Severity severity={card?.severity} />
        {secondsLeft !== undefined && secondsLeft > 0 && (
          <span role="timer" aria-live="off" className="font-mono text-sm text-approval">
            <span className="sr-only">Time left: </span>
            {clockTime(secondsLeft)}
          </span>
        )}
      </header>
      <InvisibleWarning shown={[tool.toolName, tool.input, hint, card, chain, payload]} />
      {card?.title !== undefined && (
        <p>
          <bdi>
            <Marked text={what} />
          </bdi>
        </p>
      )}
      {hint !== undefined && (
        <p className="whitespace-pre-wrap">
          <Marked text={hint} />
        </p>
      )}
      {card !== undefined && <CardBody card={card} />}
      {hasArguments && <Values value={tool.input} />}
      <p className="text-sm text-ink-2">
        Tool{" "}
        <code className="font-mono">
          <Marked text={tool.toolName} />
        </code>
        {browserTool(tool.toolName) && <RunsIn user={props.browserOf} />}
      </p>
      {edits !== undefined ? (
        <ProposedChanges id={`${id}-payload`} schema={edits} input={tool.input} payload={payload} onChanges={onChanges} />
      ) : (
        payload !== undefined && <PayloadField id={`${id}-payload`} payload={payload} onChanges={onChanges} />
      )}
      {chain !== undefined && <ChainProgress chain={chain} status={about.status} />}
      {props.more}
    </>
  );
}

function RunsIn({ user }: { user: string | undefined }) {
  if (user === undefined) return ", runs in this browser";
  return (
    <>
      , runs in the browser of <Marked text={user} />
    </>
  );
}
