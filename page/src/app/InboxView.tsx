/** The inbox: what waits for a decision of this person, newest first. */
import { Menu } from "lucide-react";
import { useEffect, useRef } from "react";
import { approverWords, readAbout } from "../conversation/about-approval.ts";
import { ApprovalCard } from "../conversation/ApprovalCard.tsx";
import { Button } from "../conversation/Button.tsx";
import { ChainProgress } from "../conversation/ChainProgress.tsx";
import { visible } from "../conversation/invisible.ts";
import { Marked } from "../conversation/Marked.tsx";
import type { ToolPart } from "../conversation/parts.ts";
import { useReviewKey } from "../conversation/review.ts";
import { sentence } from "../conversation/words.ts";
import { age } from "./age.ts";
import type { InboxEntry } from "./api.ts";
import type { InboxItem } from "./inbox.ts";
import type { Inbox } from "./useInbox.ts";

interface InboxViewProps {
  inbox: Inbox;
  /** Opens the drawer with the chats, where they are in one. */
  onChats?: () => void;
}

export function InboxView({ inbox, onChats }: InboxViewProps) {
  const { items, count } = inbox;
  const first = items.find(({ state }) => state === "waiting");
  useReviewKey(first && cardIdOf(first.entry));
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col">
      <header className="flex h-14 shrink-0 items-center gap-2 border-b border-line px-2 sm:px-4">
        {onChats && (
          <button
            type="button"
            aria-label="Chats"
            title="Chats"
            onClick={onChats}
            className="shrink-0 rounded-lg p-2 text-ink-2 hover:bg-paper-2 hover:text-ink"
          >
            <Menu size={18} aria-hidden />
          </button>
        )}
        <h1 className="text-[15px] font-semibold">Inbox</h1>
        {count > 0 && (
          <kbd className="ml-auto hidden rounded border border-line-strong px-1 font-mono text-xs text-ink-2 sm:inline">
            Alt R
          </kbd>
        )}
      </header>
      <main className="min-h-0 flex-1 overflow-y-auto overscroll-contain" tabIndex={0} aria-label="Inbox">
        <div className="mx-auto grid max-w-[46rem] grid-cols-[minmax(0,1fr)] gap-6 px-4 py-6">
          <p role="status" className="text-sm text-ink-2">
            {summary(inbox)}
          </p>
          {items.length > 0 && (
            <ul className="grid grid-cols-[minmax(0,1fr)] gap-6">
              {items.map((item) => (
                <li key={item.entry.id} className="grid grid-cols-[minmax(0,1fr)] gap-2">
                  <h2 className="text-sm text-ink-2">
                    <Marked text={item.entry.user} /> asks, {age(item.entry.askedAt)}
                  </h2>
                  <Item item={item} decide={inbox.decide} />
                </li>
              ))}
            </ul>
          )}
          {inbox.hasMore && (
            <p>
              <Button onClick={inbox.showMore}>Show more</Button>
            </p>
          )}
        </div>
      </main>
    </div>
  );
}

function summary({ count, hasMore, isLoaded, isStale }: Inbox): string {
  if (isStale) return "The server cannot be reached. This is what it said last.";
  if (!isLoaded) return "Looking…";
  if (count === 0) return "Nothing waits for you.";
  return `${count}${hasMore ? " or more" : ""} ${count === 1 && !hasMore ? "waits" : "wait"} for your decision.`;
}

function Item({ item, decide }: { item: InboxItem; decide: Inbox["decide"] }) {
  const { entry, state, problem } = item;
  if (state !== "waiting") return <Outcome item={item} />;
  return (
    <ApprovalCard
      key={entry.digest} // what is asked has changed: nothing that was typed is about it
      id={cardIdOf(entry)}
      tool={toolOf(entry)}
      approvalId={entry.id}
      about={readAbout(entry)}
      browserOf={entry.user}
      hasFailed={problem !== undefined}
      onDecide={({ approved, reason, payload }) =>
        void decide(entry.id, {
          approved,
          digest: entry.digest,
          ...(reason !== undefined && { reason }),
          ...(payload !== undefined && { payload }),
        })
      }
      more={
        <>
          {typeof entry.replaces === "string" && <p className="text-sm">Somebody has changed what is asked.</p>}
          {problem !== undefined && (
            <p role="alert" className="font-medium text-error">
              {problem}
            </p>
          )}
        </>
      }
    />
  );
}

function Outcome({ item: { entry, state, problem } }: { item: InboxItem }) {
  const about = readAbout(entry);
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // The card of the question had the focus, and is gone.
    if (state === "decided" && document.activeElement === document.body) card.current?.focus({ preventScroll: true });
  }, [state]);
  const what = [about.card?.title, sentence(entry.tool, entry.arguments)].filter(Boolean).join(": ");
  const words = state === "gone" ? (problem ?? GONE) : outcomeWords(entry);
  return (
    <div
      ref={card}
      tabIndex={-1}
      role="group"
      aria-label={visible(`${entry.tool}: ${words}`)}
      className="grid gap-2 rounded-xl border border-line bg-card p-4"
    >
      <h3 className="font-semibold">
        <bdi>
          <Marked text={what} />
        </bdi>
      </h3>
      <p role="status">{words}</p>
      {state === "decided" && about.chain !== undefined && <ChainProgress chain={about.chain} status={about.status} />}
    </div>
  );
}

const GONE = "This does not wait for you any more: somebody else has decided, or its time is up.";

/** What is recorded, which may be an earlier decision than the one that was just made. */
function outcomeWords(entry: InboxEntry): string {
  const { status, chain } = readAbout(entry);
  switch (status) {
    case "approved":
      return "Approved. The agent goes on.";
    case "pending": {
      const next = chain?.find((link) => link.status === "waiting");
      return next === undefined ? "Recorded." : `Recorded. Now it waits for ${approverWords(next.approvers)}.`;
    }
    case "denied":
      return "Denied. The agent is told.";
    case "expired":
      return "This has expired: nothing was done.";
    case "withdrawn":
      return "The agent took this back: nothing was done.";
    default:
      return "Recorded.";
  }
}

function toolOf({ id, tool, arguments: input }: InboxEntry): ToolPart {
  return {
    toolName: tool,
    toolCallId: id,
    state: "approval-requested",
    input,
    output: undefined,
    errorText: undefined,
    approval: { id },
    isPreliminary: false,
  };
}

function cardIdOf({ id }: InboxEntry): string {
  return `approval-${id}`;
}
