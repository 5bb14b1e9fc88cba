/** Runs the calls of browser tools. Each runs once, however many pages have its chat open. */
import type { Chat } from "@ai-sdk/react";
import { claimCall, type PendingCall, runPendingCalls } from "adk-stream-client";
import type { UIMessage } from "ai";
import { browserTool } from "../tools/index.ts";

/** For `onToolCall`. */
export function runBrowserCall(chat: Chat<UIMessage>, call: PendingCall): void {
  if (browserTool(call.toolName) === undefined || !claimCall(chat.id, call.toolCallId)) return;
  // Not awaited: the stream would wait for the answer, and the answer for the stream.
  void answer(chat, call);
}

/** For calls that were open when the page was loaded: no `onToolCall` comes for them. */
export function runWaitingCalls(chat: Chat<UIMessage>): void {
  void runPendingCalls(chat, (call) => runTool(chat.id, call));
}

async function answer(chat: Chat<UIMessage>, call: PendingCall): Promise<void> {
  const which = { tool: call.toolName, toolCallId: call.toolCallId };
  try {
    const output = await runTool(chat.id, call);
    if (output !== undefined) await chat.addToolOutput({ ...which, output } as never);
  } catch (error) {
    const errorText = error instanceof Error ? error.message : String(error);
    await chat.addToolOutput({ ...which, state: "output-error", errorText });
  }
}

async function runTool(chatId: string, { toolName, toolCallId, input }: PendingCall): Promise<unknown> {
  const tool = browserTool(toolName);
  if (tool === undefined || !(await isOurs(chatId, toolCallId))) return undefined;
  return tool.run(input);
}

/** Other tabs with this chat get the call too. The first one locks it, for as long as its page lives. */
function isOurs(chatId: string, toolCallId: string): Promise<boolean> {
  // Browsers have locks only where the page came over HTTPS or from this machine.
  if (!navigator.locks) return Promise.resolve(true);
  return new Promise((resolve) => {
    const name = JSON.stringify(["adk-stream call", chatId, toolCallId]);
    void navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock === null ? undefined : new Promise(() => {});
    });
  });
}
