/** A call that a person has to decide on. Nothing here takes the focus by itself, and no key works from outside. */
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { isEditable } from "../is-editable.ts";
import type { AboutApproval } from "./about-approval.ts";
import type { Decision } from "./actions.ts";
import { AnswerCard, useAnswering } from "./AnswerCard.tsx";
import { ApprovalDetails } from "./ApprovalDetails.tsx";
import { Button } from "./Button.tsx";
import { useSecondsLeft } from "./clock.ts";
import { visible } from "./invisible.ts";
import type { ToolPart } from "./parts.ts";
import type { Changes } from "./ProposedChanges.tsx";
import { humanise, inOneLine, sentence } from "./words.ts";

export interface ApprovalCardProps {
  id: string;
  tool: ToolPart;
  approvalId: string;
  about: AboutApproval;
  /** The last answer did not get through. */
  hasFailed: boolean;
  onDecide(decision: Decision): void;
  browserOf?: string;
  more?: ReactNode;
}

export function ApprovalCard({ id, tool, approvalId, about, hasFailed, onDecide, ...props }: ApprovalCardProps) {
  const answering = useAnswering(hasFailed);
  const { isSent } = answering;
  const [isDenying, setIsDenying] = useState(false);
  const [changes, setChanges] = useState<Changes>({ payload: about.payload, isValid: true });
  const secondsLeft = useSecondsLeft(isSent ? undefined : about.deadline);
  const isExpired = secondsLeft !== undefined && secondsLeft <= 0;
  const mayApprove = !isSent && !isExpired && changes.isValid;
  const what = sentence(tool.toolName, tool.input);
  // Where the sentence names no arguments, the buttons do: two cards may be about the same tool.
  const whatInFull = visible(
    what === humanise(tool.toolName) ? [what, inOneLine(tool.input)].filter(Boolean).join(", ") : what,
  );

  const decide = (decision: { approved: boolean; reason?: string; payload?: unknown }) => {
    setIsDenying(false);
    answering.markSent();
    onDecide({ approvalId, toolCallId: tool.toolCallId, ...decision });
  };
  const approve = () => {
    if (!mayApprove) return;
    decide({ approved: true, ...(changes.payload !== undefined && { payload: changes.payload }) });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || isEditable(event.target) || isSent) return;
    const key = event.key.toLowerCase();
    if (key !== "a" && key !== "d") return;
    event.preventDefault();
    if (key === "a") approve();
    else if (!isExpired) setIsDenying(true);
  };

  return (
    <AnswerCard
      id={id}
      label={`${tool.toolName}: ${what} needs your go-ahead`}
      answering={answering}
      onKeyDown={onKeyDown}
      question={
        <ApprovalDetails
          id={id}
          tool={tool}
          what={what}
          about={about}
          secondsLeft={secondsLeft}
          onChanges={isSent ? undefined : setChanges}
          {...props}
        />
      }
    >
      {isExpired ? (
        <Expired
          what={whatInFull}
          // The server ends a chain by itself.
          onTell={
            about.chain === undefined
              ? () => decide({ approved: false, reason: "Nobody answered in time." })
              : undefined
          }
        />
      ) : isDenying ? (
        <Denial
          what={whatInFull}
          onDeny={(reason) => decide({ approved: false, ...(reason !== "" && { reason }) })}
          onBack={() => {
            setIsDenying(false);
            answering.card.current?.focus();
          }}
        />
      ) : (
        <div className="flex flex-wrap gap-2">
          <Button kind="main" disabled={!mayApprove} onClick={approve}>
            <Named word="Approve" what={whatInFull} /> <Key>A</Key>
          </Button>
          <Button onClick={() => setIsDenying(true)}>
            <Named word="Deny" what={whatInFull} /> <Key>D</Key>
          </Button>
        </div>
      )}
    </AnswerCard>
  );
}

function Denial(props: { what: string; onDeny(reason: string): void; onBack(): void }) {
  const [reason, setReason] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []); // somebody has just pressed Deny
  return (
    <form
      className="flex flex-wrap gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        props.onDeny(reason.trim());
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        props.onBack();
      }}
    >
      <input
        ref={field}
        aria-label="Reason, if you want to give one"
        placeholder="Why not? The agent will read it."
        value={reason}
        maxLength={2_000}
        onChange={(event) => setReason(event.target.value)}
        className="min-w-40 flex-1 rounded-md border border-line-strong bg-card px-3 py-1.5"
      />
      <Button kind="main" type="submit">
        <Named word="Deny" what={props.what} />
      </Button>
      <Button kind="quiet" onClick={props.onBack}>
        Back
      </Button>
    </form>
  );
}

function Expired({ what, onTell }: { what: string; onTell: (() => void) | undefined }) {
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Button kind="main" disabled>
        <Named word="Approve" what={what} />
      </Button>
      <Button disabled>
        <Named word="Deny" what={what} />
      </Button>
      <p role="status">This has expired: nothing was done.</p>
      {onTell !== undefined && (
        <Button kind="quiet" onClick={onTell}>
          Tell the agent
        </Button>
      )}
    </div>
  );
}

/** Two cards may be open: whoever hears a button alone must know what it approves. */
function Named({ word, what }: { word: string; what: string }) {
  return (
    <span>
      {word}
      <span className="sr-only"> {what}</span>
    </span>
  );
}

/** Shown where it works: while the focus is in the card. */
function Key({ children }: { children: ReactNode }) {
  return (
    <kbd
      aria-hidden
      className="hidden rounded border border-current px-1 font-mono text-xs sm:group-focus-within/card:inline"
    >
      {children}
    </kbd>
  );
}
