/** What a person may do with a conversation: given by the app, used deep inside. */
import { createContext, useContext, useRef, useState } from "react";

export interface Decision {
  approvalId: string;
  toolCallId: string;
  approved: boolean;
  reason?: string;
  payload?: unknown;
}

/** With `errorText`, the tool has failed. */
export type ToolOutput = { toolName: string; toolCallId: string } & ({ output: unknown } | { errorText: string });

/** One line of the server's audit trail. */
export interface TrailLine {
  /** Seconds since 1970. */
  at: number;
  /** The invocation and the id of the call. */
  call: [string, string];
  tool: string;
  state: string;
  digest: string;
  /** Of the call with what an approver has changed, if there is any. */
  shown_digest?: string;
  replaces?: string;
  payload?: unknown;
  /** Whoever decided, or the token of a run. */
  by?: string;
  approved?: boolean;
  reason?: string;
  /** Only in the line that asks, like the approvers. */
  approval_id?: string;
  approvers?: string[][];
  link?: number;
}

export interface Actions {
  onDecide(decision: Decision): void;
  onToolOutput(output: ToolOutput): void;
  onRetry(): void;
  onRegenerate(messageId: string): void;
  onEdit(messageId: string, text: string): void;
  /** Of the whole chat. */
  readTrail(): Promise<TrailLine[]>;
}

export const ActionsContext = createContext<Actions | undefined>(undefined);

export function useActions(): Actions {
  const actions = useContext(ActionsContext);
  if (actions === undefined) throw new Error("useActions works only inside of a Conversation.");
  return actions;
}

/** Always the same object, which calls the newest functions. So new functions draw no message again. */
export function useStableActions(actions: Actions): Actions {
  const newest = useRef(actions);
  newest.current = actions;
  const [stable] = useState<Actions>(() => ({
    onDecide: (decision) => newest.current.onDecide(decision),
    onToolOutput: (output) => newest.current.onToolOutput(output),
    onRetry: () => newest.current.onRetry(),
    onRegenerate: (messageId) => newest.current.onRegenerate(messageId),
    onEdit: (messageId, text) => newest.current.onEdit(messageId, text),
    readTrail: () => newest.current.readTrail(),
  }));
  return stable;
}
