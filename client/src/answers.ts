/** When a page posts its answers by itself: `sendAutomaticallyWhen` for this server. */
import type { UIMessage } from "ai";

interface Call {
  state: string;
  preliminary?: boolean;
  providerExecuted?: boolean;
}

/**
 * Whether the last step of the last message has answers to post, and no call in it waits for this page any more. An
 * answer is a decision, yes or no, or the output of a browser tool. It says what both helpers of the newest AI SDK say
 * together, in every release: some lack one of them, and older ones post while a tool still works.
 */
export function answersAreComplete({ messages }: { messages: UIMessage[] }): boolean {
  const message = messages.at(-1);
  if (message?.role !== "assistant") return false;
  const step = message.parts.slice(message.parts.findLastIndex(({ type }) => type === "step-start") + 1);
  const calls = step.filter(isCall) as Call[];
  if (calls.some(isDecided)) return calls.every((call) => hasEnded(call) || isDecided(call) || isDenied(call));
  const executed = step.filter((part) => isCall(part) && !part.providerExecuted);
  // A text that was cut off: its answer was stopped.
  const isCut = step.slice(step.lastIndexOf(executed.at(-1)!)).some((part) => part.type === "text" && part.state !== "done");
  return executed.length > 0 && (executed as Call[]).every(hasEnded) && !isCut;
}

const isCall = (part: UIMessage["parts"][number]) => "toolCallId" in part;
const isDecided = ({ state }: Call) => state === "approval-responded";
const isDenied = ({ state }: Call) => state === "output-denied";
const hasEnded = ({ state, preliminary }: Call) =>
  (state === "output-available" && !preliminary) || state === "output-error";
