/** What an approval is about, and what may be changed before it is given. */
import { useState } from "react";
import { browserTool } from "../tools/index.ts";
import { clockTime } from "./clock.ts";
import { isRecord } from "../is-record.ts";
import { editableJson } from "./invisible.ts";
import { InvisibleWarning, Marked } from "./Marked.tsx";
import type { AboutApproval, ToolPart } from "./parts.ts";
import { Values } from "./Values.tsx";
import { isForPeople } from "./words.ts";

/** What the tool is told with the approval, as the person has edited it. */
export interface Changes {
  payload: unknown;
  isValid: boolean;
}

export interface ApprovalDetailsProps {
  id: string;
  tool: ToolPart;
  what: string;
  about: AboutApproval;
  secondsLeft: number | undefined;
  /** Undefined when nothing can be changed any more. */
  onChanges: ((changes: Changes) => void) | undefined;
}

export function ApprovalDetails({ id, tool, what, about, secondsLeft, onChanges }: ApprovalDetailsProps) {
  const { severity, chain, metadata, payload } = about;
  const hint = about.hint !== undefined && isForPeople(about.hint) ? about.hint : undefined;
  const hasArguments = isRecord(tool.input) ? Object.keys(tool.input).length > 0 : tool.input != null;
  return (
    <>
      <header className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <h3 className="mr-auto font-semibold">
          <bdi>
            <Marked text={what} />
          </bdi>{" "}
          <span className="font-normal">needs your go-ahead</span>
        </h3>
        {severity !== undefined && <Fact label="Severity">{severity}</Fact>}
        {chain !== undefined && <Fact label="Approval">{`${chain.step} of ${chain.of}`}</Fact>}
        {secondsLeft !== undefined && secondsLeft > 0 && (
          <span role="timer" aria-live="off" className="font-mono text-sm text-approval">
            <span className="sr-only">Time left: </span>
            {clockTime(secondsLeft)}
          </span>
        )}
      </header>
      <InvisibleWarning shown={[tool.toolName, tool.input, hint, severity, metadata, payload]} />
      {hint !== undefined && (
        <p className="whitespace-pre-wrap">
          <Marked text={hint} />
        </p>
      )}
      {hasArguments && <Values value={tool.input} />}
      {metadata !== undefined && <Values value={metadata} />}
      <p className="text-sm text-ink-2">
        Tool{" "}
        <code className="font-mono">
          <Marked text={tool.toolName} />
        </code>
        {browserTool(tool.toolName) && ", runs in this browser"}
      </p>
      {payload !== undefined && <PayloadField id={`${id}-payload`} payload={payload} onChanges={onChanges} />}
    </>
  );
}

function Fact({ label, children }: { label: string; children: string }) {
  return (
    <span className="rounded-full border border-approval-line px-2 text-sm text-approval">
      {label}: <Marked text={children} />
    </span>
  );
}

/** The server takes the arguments only as they were shown. A person can change just what the tool has asked about. */
function PayloadField(props: { id: string; payload: unknown; onChanges: ((changes: Changes) => void) | undefined }) {
  const [text, setText] = useState(() => editableJson(props.payload));
  const [isValid, setIsValid] = useState(true);
  const change = (changed: string) => {
    setText(changed);
    let payload: unknown;
    let isJson = true;
    try {
      payload = JSON.parse(changed);
    } catch {
      isJson = false;
    }
    setIsValid(isJson);
    props.onChanges?.({ payload, isValid: isJson });
  };
  return (
    <div className="grid gap-1">
      <label htmlFor={props.id} className="text-sm font-medium">
        Sent to the tool (JSON)
      </label>
      <textarea
        id={props.id}
        value={text}
        readOnly={props.onChanges === undefined}
        rows={Math.min(10, text.split("\n").length)}
        spellCheck={false}
        aria-invalid={!isValid}
        aria-describedby={`${props.id}-note`}
        onChange={(event) => change(event.target.value)}
        className="rounded-md border border-line-strong bg-card p-2 font-mono text-sm"
      />
      <p id={`${props.id}-note`} className={`text-sm ${isValid ? "text-ink-2" : "text-error"}`}>
        {isValid
          ? "The tool gets this with your approval. The arguments above stay the same."
          : "This is not JSON yet."}
      </p>
    </div>
  );
}
