/** The helper says what the stock helpers of the newest releases say together, whatever is in a message. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as ai7 from "ai";
import type { UIMessage } from "ai";
import { answersAreComplete } from "../src/answers.ts";

const ai6: typeof ai7 = await import("../node_modules/client-6/node_modules/ai/dist/index.mjs" as string);

const STATES = ["input-available", "approval-requested", "approval-responded", "output-available", "output-error"];
const CALLS = [...STATES, "output-denied"].map((state) => ({ state }));
const PARTS: object[] = [
  ...CALLS.map((call) => ({ type: "tool-pay", toolCallId: "c", ...call })),
  { type: "dynamic-tool", toolName: "pay", toolCallId: "c", state: "output-available", preliminary: true },
  { type: "tool-search", toolCallId: "c", state: "output-available", providerExecuted: true },
  { type: "tool-search", toolCallId: "c", state: "input-available", providerExecuted: true },
  { type: "text", text: "", state: "done" },
  { type: "text", text: "", state: "streaming" },
  { type: "step-start" },
];

function* messagesOf(most: number): Generator<object[]> {
  yield [];
  if (most > 0) for (const rest of messagesOf(most - 1)) for (const part of PARTS) yield [part, ...rest];
}

for (const [release, ai] of Object.entries({ 6: ai6, 7: ai7 })) {
  test(`as with both helpers of ai ${release}, in every message of up to four parts`, () => {
    const counted = { yes: 0, no: 0 };
    for (const parts of messagesOf(4)) {
      const messages = [{ id: "m", role: "assistant", parts }] as UIMessage[];
      const wanted =
        ai.lastAssistantMessageIsCompleteWithApprovalResponses({ messages }) ||
        ai.lastAssistantMessageIsCompleteWithToolCalls({ messages });
      assert.equal(answersAreComplete({ messages }), wanted, JSON.stringify(parts));
      counted[wanted ? "yes" : "no"] += 1;
    }
    assert.ok(counted.yes > 1_000 && counted.no > 1_000, JSON.stringify(counted));
  });
}

test("a message of the user has nothing to post, nor has an empty chat", () => {
  assert.equal(answersAreComplete({ messages: [] }), false);
  const parts = [{ type: "tool-pay", toolCallId: "c", state: "approval-responded" }];
  assert.equal(answersAreComplete({ messages: [{ id: "m", role: "user", parts }] as unknown as UIMessage[] }), false);
});
