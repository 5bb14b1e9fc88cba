/** Compares the server's record with what the page shows. Each may know of decisions that the other does not. */
import { isToolUIPart, type UIMessage } from "ai";
import { readAbout } from "../conversation/about-approval.ts";

type Part = UIMessage["parts"][number];

/** Whether the record has something that the page does not show. */
export function hasMovedOn(shown: UIMessage[], record: UIMessage[]): boolean {
  return signature(shown) !== signature(record);
}

/** The record, with the decisions of this page that have not been sent yet. */
export function adoptRecord(shown: UIMessage[], record: UIMessage[]): UIMessage[] {
  const decided = new Map<string, Part>();
  for (const message of shown)
    for (const part of message.parts)
      if (isToolUIPart(part) && part.state === "approval-responded") decided.set(part.toolCallId, part);
  return record.map((message) => ({
    ...message,
    parts: message.parts.map((part) => {
      if (!isToolUIPart(part) || part.state !== "approval-requested") return part;
      return decided.get(part.toolCallId) ?? part;
    }),
  }));
}

/** Whether the last message ends with the result of a tool: the words after it may have gone to another page. */
export function lacksWords(messages: UIMessage[]): boolean {
  const last = messages.at(-1);
  const end = last?.parts.findLast((part) => isToolUIPart(part) || isText(part));
  return last?.role === "assistant" && end !== undefined && isToolUIPart(end) && end.state.startsWith("output-");
}

/** Whether there are calls that somebody else may answer. */
export function hasOpenCalls(messages: UIMessage[]): boolean {
  return othersDecide(messages) || messages.some(({ parts }) => parts.some(isOpenCall));
}

function isOpenCall(part: Part): boolean {
  return isToolUIPart(part) && (part.state === "approval-requested" || part.state === "input-available");
}

/** Whether a call waits for others than the chat's owner. */
export function othersDecide(messages: UIMessage[]): boolean {
  return messages.some(({ parts }) => parts.some((part) => aboutOf(part)?.status === "pending"));
}

/** What is shown, with the newest of what others have decided. */
export function withApprovals(shown: UIMessage[], record: UIMessage[]): UIMessage[] {
  const approvals = record.flatMap(({ parts }) => parts).filter((part) => aboutOf(part) !== undefined);
  const newest = (part: Part) => approvals.find((other) => part.type === other.type && idOf(other) === idOf(part));
  return shown.map((message) => ({ ...message, parts: message.parts.map((part) => newest(part) ?? part) }));
}

function aboutOf(part: Part) {
  return part.type === "data-adk-approval" && "data" in part ? readAbout(part.data) : undefined;
}

function idOf(part: Part): unknown {
  return "id" in part ? part.id : undefined;
}

function signature(messages: UIMessage[]): string {
  return JSON.stringify(
    messages.map(({ id, parts }) => [
      id,
      parts.flatMap(toolState),
      parts.flatMap(chainState),
      parts.filter(isText).length,
    ]),
  );
}

/** Who has decided so far. The deadline is not looked at: a page may have got it earlier. */
function chainState(part: Part): string[] {
  const about = aboutOf(part);
  if (about?.chain === undefined) return [];
  return [String(idOf(part)), String(about.status), ...about.chain.map(({ status }) => status)];
}

function toolState(part: Part): string[] {
  if (!isToolUIPart(part)) return [];
  // Until it is sent, a decision is known to this page alone.
  const state = part.state === "approval-responded" ? "approval-requested" : part.state;
  return [part.toolCallId, state];
}

function isText(part: Part): boolean {
  return part.type === "text" && part.text !== "";
}
