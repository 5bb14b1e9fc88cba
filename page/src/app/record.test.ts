import type { UIMessage } from "ai";
import { expect, it } from "vitest";
import { adoptRecord, hasMovedOn, hasOpenCalls, lacksWords } from "./record.ts";

type State = "approval-requested" | "approval-responded" | "input-available" | "output-available" | "output-denied";

function call(toolCallId: string, state: State) {
  const approval = { id: `approval of ${toolCallId}`, ...(state === "approval-responded" ? { approved: true } : {}) };
  return {
    type: "tool-pay",
    toolCallId,
    state,
    input: {},
    approval,
    ...(state === "output-available" ? { output: 1 } : {}),
  };
}

function conversation(...parts: object[]): UIMessage[] {
  return [
    { id: "u1", role: "user", parts: [{ type: "text", text: "Pay" }] },
    { id: "a1", role: "assistant", parts: parts as UIMessage["parts"] },
  ];
}

it("a decision made elsewhere moves the record on", () => {
  const shown = conversation(call("c1", "approval-requested"));
  expect(hasMovedOn(shown, conversation(call("c1", "approval-requested")))).toBe(false);
  expect(hasMovedOn(shown, conversation(call("c1", "output-denied")))).toBe(true);
});

it("a message more, and words more, move the record on", () => {
  const shown = conversation(call("c1", "output-available"));
  expect(hasMovedOn(shown, conversation(call("c1", "output-available"), { type: "text", text: "Paid." }))).toBe(true);
  expect(hasMovedOn(shown, [...shown, { id: "u2", role: "user", parts: [] }])).toBe(true);
});

it("a decision of this page that was not sent yet is no news, and survives what was decided elsewhere", () => {
  const shown = conversation(call("c1", "approval-responded"), call("c2", "approval-requested"));
  expect(hasMovedOn(shown, conversation(call("c1", "approval-requested"), call("c2", "approval-requested")))).toBe(
    false,
  );
  const record = conversation(call("c1", "approval-requested"), call("c2", "output-denied"));
  expect(hasMovedOn(shown, record)).toBe(true);
  const adopted = adoptRecord(shown, record);
  expect(adopted[1]!.parts).toMatchObject([{ state: "approval-responded" }, { state: "output-denied" }]);
  expect(hasMovedOn(adopted, record)).toBe(false);
});

it("the record outranks a decision of this page that came too late", () => {
  const shown = conversation(call("c1", "approval-responded"));
  const record = conversation(call("c1", "output-denied"));
  expect(adoptRecord(shown, record)).toEqual(record);
});

it("calls are open that a person or a browser can answer", () => {
  expect(hasOpenCalls(conversation(call("c1", "output-available"), call("c2", "approval-requested")))).toBe(true);
  expect(hasOpenCalls(conversation(call("c1", "input-available")))).toBe(true);
  expect(hasOpenCalls(conversation(call("c1", "output-available")))).toBe(false);
});

it("words are missing after the result of a tool, and only there", () => {
  const words = { type: "text", text: "Paid." };
  expect(lacksWords(conversation(call("c1", "output-available"), { type: "text", text: "" }))).toBe(true);
  expect(lacksWords(conversation(words, call("c1", "output-denied")))).toBe(true);
  expect(lacksWords(conversation(call("c1", "output-available"), words))).toBe(false);
  expect(lacksWords(conversation(call("c1", "approval-requested")))).toBe(false);
  expect(lacksWords(conversation(call("c1", "output-available")).slice(0, 1))).toBe(false);
  expect(lacksWords([])).toBe(false);
});
