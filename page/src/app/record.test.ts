import type { UIMessage } from "ai";
import { expect, it } from "vitest";
import { adoptRecord, hasMovedOn, hasOpenCalls, lacksWords, othersDecide, withApprovals } from "./record.ts";

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

const chain = (id: string, status: string, ...links: string[]) => ({
  type: "data-adk-approval",
  id,
  data: { status, deadline: links.join(), chain: links.map((each) => ({ approvers: ["max"], status: each })) },
});

it("what others decide moves the record, link by link, and their deadlines do not", () => {
  const shown = conversation(call("c1", "input-available"), chain("a1", "pending", "waiting", "pending"));
  const moved = conversation(call("c1", "input-available"), chain("a1", "pending", "approved", "waiting"));
  expect(hasMovedOn(shown, moved)).toBe(true);
  const later = conversation(call("c1", "input-available"), {
    ...chain("a1", "pending", "waiting", "pending"),
    data: { ...chain("a1", "pending", "waiting", "pending").data, deadline: "later" },
  });
  expect(hasMovedOn(shown, later)).toBe(false);
});

it("others decide as long as a chain is pending, also about a call that nobody can answer here", () => {
  const deferred = { ...call("c1", "input-available"), state: "input-streaming" };
  const open = conversation(deferred, chain("a1", "pending", "waiting"));
  expect([othersDecide(open), hasOpenCalls(open)]).toEqual([true, true]);
  const ended = conversation(call("c1", "output-available"), chain("a1", "denied", "denied"));
  expect([othersDecide(ended), hasOpenCalls(ended)]).toEqual([false, false]);
  expect(othersDecide(conversation({ type: "data-adk-approval", id: "a", data: { hint: "Pay?" } }))).toBe(false);
});

it("only what others decide is taken from the record where all else comes another way", () => {
  const [words, more] = [
    { type: "text", text: "Here" },
    { type: "text", text: "There" },
  ];
  const shown = conversation(words, chain("a1", "pending", "waiting"), chain("a2", "pending", "waiting"));
  const record = conversation(more, chain("a1", "denied", "denied"));
  expect(withApprovals(shown, record)).toEqual(
    conversation(words, chain("a1", "denied", "denied"), chain("a2", "pending", "waiting")),
  );
});
