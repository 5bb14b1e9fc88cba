/** Reads messages and their parts in the same way for every release of the AI SDK, and for any tool. */
import type { UIMessage } from "ai";
import { isRecord } from "../is-record.ts";
import { toolForPeople } from "../tools/index.ts";

export type Part = UIMessage["parts"][number];

export interface ToolApproval {
  id: string;
  approved?: boolean;
  reason?: string;
  /** From version 7 on: the same as in `data-adk-approval`. */
  descriptor?: unknown;
}

export interface ToolPart {
  toolName: string;
  toolCallId: string;
  state: string;
  input: unknown;
  output: unknown;
  errorText: string | undefined;
  approval: ToolApproval | undefined;
  isPreliminary: boolean;
}

export const REQUEST_INPUT = "adk_request_input";

export function toolPart(part: Part): ToolPart | undefined {
  if (part.type !== "dynamic-tool" && !part.type.startsWith("tool-")) return undefined;
  const fields = part as Record<string, unknown>;
  return {
    toolName: part.type === "dynamic-tool" ? String(fields.toolName) : part.type.slice("tool-".length),
    toolCallId: String(fields.toolCallId),
    state: String(fields.state),
    input: fields.input,
    output: fields.output,
    errorText: typeof fields.errorText === "string" ? fields.errorText : undefined,
    approval: isRecord(fields.approval) ? (fields.approval as unknown as ToolApproval) : undefined,
    isPreliminary: fields.preliminary === true,
  };
}

/** Our own notes on a part: who speaks, and how. */
export interface AdkMetadata {
  /** Of an agent that runs as a tool: its call. */
  toolCallId?: string;
  author?: string;
  transcript?: boolean;
  replaced?: boolean;
}

export function adkMetadata(part: Part): AdkMetadata {
  const fields = part as Record<string, unknown>;
  const metadata = fields.providerMetadata ?? fields.callProviderMetadata;
  return isRecord(metadata) && isRecord(metadata.adk) ? metadata.adk : {};
}

/** Our own notes on a message. */
export interface MessageNotes {
  interrupted?: boolean;
  limit?: string;
}

export function messageNotes(message: UIMessage): MessageNotes {
  return isRecord(message.metadata) ? message.metadata : {};
}

export interface WaitingCall {
  approvalId: string;
  toolCallId: string;
  toolName: string;
}

export function waitingApprovals(messages: UIMessage[]): WaitingCall[] {
  const tools = messages.flatMap(({ parts }) => parts.map(toolPart).filter((tool) => tool !== undefined));
  return tools.flatMap(({ state, approval, toolCallId, toolName }) =>
    state === "approval-requested" && approval !== undefined ? [{ approvalId: approval.id, toolCallId, toolName }] : [],
  );
}

/** The ids of the cards that a person has to answer, approvals and forms, in their order. */
export function waitingCards(messages: UIMessage[]): string[] {
  return messages.flatMap(({ id, parts }) =>
    parts.flatMap((part) => {
      const tool = toolPart(part);
      return tool !== undefined && isForPerson(tool) ? [cardId(id, tool.toolCallId)] : [];
    }),
  );
}

/** A question of the agent's, or a browser tool that this page does not know. */
export function isForm(tool: ToolPart): boolean {
  if (tool.state !== "input-available") return false;
  return tool.toolName === REQUEST_INPUT || toolForPeople(tool.toolName) !== undefined;
}

function isForPerson(tool: ToolPart): boolean {
  return tool.state === "approval-requested" || isForm(tool);
}

/** The id of a card's element. It names the message too, since calls of two messages may have the same id. */
export function cardId(messageId: string, toolCallId: string): string {
  return `call-${messageId}-${toolCallId}`;
}

export function textOf(message: UIMessage): string {
  return message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}
