/** What a person may do with a conversation: given by the app, used deep inside. */
import { createContext, useContext, useRef, useState } from "react";

export interface Decision {
  approvalId: string;
  toolCallId: string;
  approved: boolean;
  reason?: string;
  payload?: unknown;
}

export interface ToolOutput {
  toolName: string;
  toolCallId: string;
  output: unknown;
}

export interface Actions {
  onDecide(decision: Decision): void;
  onToolOutput(output: ToolOutput): void;
  onRetry(): void;
  onRegenerate(messageId: string): void;
  onEdit(messageId: string, text: string): void;
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
  }));
  return stable;
}
