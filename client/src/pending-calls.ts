/** Calls of browser tools that were open when the page was loaded: no `onToolCall` comes for them. */
import type { UIMessage } from "ai";
import { isBusy, type MaybeRef, read } from "./chat-like.ts";

export interface PendingCall {
  toolName: string;
  toolCallId: string;
  input: unknown;
}

/** Returns the output, throws the error, or returns undefined for a call that is none of its business. */
export type CallHandler = (call: PendingCall) => unknown;

export interface AnswerableChat {
  readonly id: MaybeRef<string>;
  readonly messages: MaybeRef<UIMessage[]>;
  readonly status: MaybeRef<string>;
  // The types of the outputs differ from chat to chat.
  addToolOutput?: (answer: any) => unknown;
  /** Its name before 5.0.89. */
  addToolResult?: (answer: any) => unknown;
}

const claimed = new Set<string>();

/** Whether the call is the caller's to run: true once for each call in the life of a page. */
export function claimCall(chatId: string, toolCallId: string): boolean {
  const call = JSON.stringify([chatId, toolCallId]);
  if (claimed.has(call)) return false;
  claimed.add(call);
  return true;
}

/**
 * Runs what waits for the browser in the last message, each call once, however often this is called. While a response
 * is being read nothing is run: its calls come through `onToolCall`.
 */
export async function runPendingCalls(chat: AnswerableChat, handler: CallHandler): Promise<void> {
  if (isBusy(chat)) return;
  const chatId = read(chat.id);
  const calls = pendingCalls(read(chat.messages).at(-1)).filter(({ toolCallId }) => claimCall(chatId, toolCallId));
  // React's strict mode stops a chat of ai@7 right after its first effects, and while it is stopped it sends nothing.
  if (calls.length > 0) await new Promise((resolve) => setTimeout(resolve));
  await Promise.all(calls.map((call) => runCall(chat, call, handler)));
}

async function runCall(chat: AnswerableChat, call: PendingCall, handler: CallHandler): Promise<void> {
  let answer: { output: unknown } | { state: "output-error"; errorText: string };
  try {
    const output = await handler(call);
    if (output === undefined) return;
    answer = { output };
  } catch (error) {
    answer = { state: "output-error", errorText: error instanceof Error ? error.message : String(error) };
  }
  const add = chat.addToolOutput ?? chat.addToolResult;
  await add?.call(chat, { tool: call.toolName, toolCallId: call.toolCallId, ...answer });
}

function pendingCalls(message: UIMessage | undefined): PendingCall[] {
  if (message?.role !== "assistant") return [];
  return message.parts.flatMap((part) => {
    if (!("toolCallId" in part) || part.state !== "input-available" || part.providerExecuted) return [];
    const toolName = part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);
    return [{ toolName, toolCallId: part.toolCallId, input: part.input }];
  });
}
