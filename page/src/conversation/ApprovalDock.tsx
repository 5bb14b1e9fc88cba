/** Above the composer: how many calls wait for a person, and the way to the first of them. */
import type { UIMessage } from "ai";
import { CircleAlert } from "lucide-react";
import { waitingCards } from "./parts.ts";
import { showCard, useReviewKey } from "./review.ts";

export function ApprovalDock({ messages }: { messages: UIMessage[] }) {
  const cards = waitingCards(messages);
  const first = cards[0];
  useReviewKey(first);
  return (
    <div role="status">
      {first !== undefined && (
        <div className="flex items-center gap-2.5 rounded-t-xl border border-b-0 border-approval-line bg-approval-paper px-4 py-2 text-sm">
          <CircleAlert size={16} aria-hidden className="shrink-0 text-approval" />
          <span className="mr-auto">
            {cards.length === 1 ? "1 action waits" : `${cards.length} actions wait`} for your answer
          </span>
          <button
            type="button"
            onClick={() => showCard(first)}
            className="rounded font-medium underline underline-offset-2"
          >
            Review
          </button>
          <kbd className="hidden rounded border border-line-strong px-1 font-mono text-xs text-ink-2 sm:inline">
            Alt R
          </kbd>
        </div>
      )}
    </div>
  );
}
