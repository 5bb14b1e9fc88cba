/** The conversation: its messages, the wait for the next one, and what went wrong. */
import type { UIMessage } from "ai";
import { ArrowDown, CircleAlert } from "lucide-react";
import { type ReactNode, useRef } from "react";
import type { Mode } from "../wire/log.ts";
import { type Actions, ActionsContext, useStableActions } from "./actions.ts";
import { Button } from "./Button.tsx";
import { Message } from "./Message.tsx";
import { useStickToEnd } from "./useStickToEnd.ts";

export { ApprovalDock } from "./ApprovalDock.tsx";
export { waitingApprovals } from "./parts.ts";

export interface ConversationProps extends Actions {
  messages: UIMessage[];
  status: "submitted" | "streaming" | "ready" | "error";
  /** Its message is shown as it is. */
  error: Error | undefined;
  /** Whether it makes sense to try again. */
  isRetryable: boolean;
  mode: Mode;
  /** The ticks of the chunks that built a part. A new function draws all messages again. */
  gutter(messageId: string, partKey: string): ReactNode;
  /** How much of an interrupted message's voice was played, from 0 to 1, where that is known. */
  spokenShare?(messageId: string): number | undefined;
}

export function Conversation(props: ConversationProps) {
  const { messages, status, error, mode, gutter, spokenShare } = props;
  const actions = useStableActions(props);
  const list = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { isAtEnd, toEnd, onScroll } = useStickToEnd(list, content);
  const isBusy = status === "submitted" || status === "streaming";
  const last = messages.at(-1);
  const isSilent = status === "submitted" || (status === "streaming" && last?.role === "assistant" && isEmpty(last));
  return (
    <ActionsContext value={actions}>
      <div className="relative min-h-0 flex-1">
        <div
          ref={list}
          role="log"
          aria-label="Conversation"
          aria-busy={isBusy}
          tabIndex={0}
          onScroll={onScroll}
          className="h-full overflow-y-auto overscroll-contain"
        >
          <div ref={content} className="mx-auto grid max-w-[46rem] grid-cols-[minmax(0,1fr)] gap-6 px-4 py-6">
            {messages.map((message, index) => {
              const isLast = index === messages.length - 1;
              return (
                <Message
                  key={message.id}
                  message={message}
                  isLast={isLast}
                  isStreaming={isLast && status === "streaming" && message.role === "assistant"}
                  hasFailed={status === "error"}
                  mayChange={mode === "chat" && !isBusy}
                  gutter={gutter}
                  spokenShare={spokenShare?.(message.id)}
                />
              );
            })}
            {isSilent && <Pending />}
            {status === "error" && <Failure error={error} onRetry={props.isRetryable ? actions.onRetry : undefined} />}
          </div>
        </div>
        {!isAtEnd && (
          <button
            type="button"
            onClick={toEnd}
            aria-label="Go to the end"
            title="Go to the end"
            className="absolute bottom-3 left-1/2 grid size-9 -translate-x-1/2 place-items-center rounded-full border border-line-strong bg-card shadow"
          >
            <ArrowDown size={16} aria-hidden />
          </button>
        )}
      </div>
    </ActionsContext>
  );
}

function isEmpty({ parts }: UIMessage): boolean {
  return parts.every(({ type }) => type === "step-start");
}

function Pending() {
  return (
    <p role="status" className="flex items-center gap-1.5 pl-9">
      <span className="sr-only">The agent is on it</span>
      {[0, 150, 300].map((delay) => (
        <span
          key={delay}
          className="size-1.5 animate-pulse rounded-full bg-ink-2"
          style={{ animationDelay: `${delay}ms` }}
        />
      ))}
    </p>
  );
}

function Failure({ error, onRetry }: { error: Error | undefined; onRetry: (() => void) | undefined }) {
  return (
    <div
      role="alert"
      className="ml-9 flex flex-wrap items-center gap-3 rounded-xl border border-error bg-error-paper px-4 py-3"
    >
      <CircleAlert size={16} aria-hidden className="text-error" />
      <p className="mr-auto min-w-0">{error?.message.trim() || "Something went wrong."}</p>
      {onRetry !== undefined && <Button onClick={onRetry}>Retry</Button>}
    </div>
  );
}
