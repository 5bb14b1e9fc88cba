import { screen, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { assistant, call, card, show } from "./testing.tsx";

afterEach(() => {
  vi.useRealTimers();
});

const WAITING = [
  { approvers: ["group:managers"], status: "approved", by: "max", reason: "due" },
  { approvers: ["eva", "group:board"], status: "waiting" },
  { approvers: ["zoe"], status: "pending" },
];
const DENIED = [{ approvers: ["max"], status: "denied", by: "max" }, WAITING[2]!];

function moved(state: string, data: object, more: object = {}) {
  const about = { type: "data-adk-approval", id: "approval-1", data: { toolCallId: "call-1", ...data } };
  return assistant(call(state, more), about);
}
const lines = () => within(card()).getAllByRole("listitem").map(({ textContent }) => textContent);

test("the owner who is no approver sees how far others are, without a button", () => {
  const { update } = show([moved("input-available", { status: "pending", chain: WAITING })]);
  expect(card().getAttribute("aria-label")).toBe("process_payment: Waits for others");
  expect(lines()).toEqual(["max approved: due", "waits for eva, or one of board", "then zoe"]);
  expect(screen.queryByRole("button", { name: /^(Approve|Deny)/ })).toBeNull();
  update([moved("output-error", { status: "denied", chain: DENIED }, { errorText: "Not run." })]);
  expect(card().getAttribute("aria-label")).toBe("process_payment: Denied");
  expect(lines()).toEqual(["max denied", "zoe: not asked"]);
});

test("a browser tool that waits for others says so, and one that was late", () => {
  const { update } = show([moved("input-streaming", { status: "pending", chain: WAITING })]);
  expect(card().getAttribute("aria-label")).toBe("process_payment: Waits for others");
  const late = [{ approvers: ["eva"], status: "expired" }];
  update([moved("output-error", { status: "expired", chain: late }, { errorText: "Too late." })]);
  expect(card().getAttribute("aria-label")).toBe("process_payment: Expired");
  expect(lines()).toEqual(["no answer of eva in time"]);
});

test("what came of it is told as of any call", () => {
  const all = [{ approvers: ["max"], status: "approved", by: "max" }];
  show([moved("output-available", { status: "approved", chain: all }, { output: {} })]);
  expect(card().getAttribute("aria-label")).toBe("process_payment: Completed");
  expect(lines()).toEqual(["max approved"]);
});

test("the time of whoever is to decide counts down, and only while it counts", () => {
  vi.useFakeTimers({ now: new Date("2026-01-01T12:00:00Z") });
  const deadline = "2026-01-01T12:01:00.000Z";
  const { update } = show([moved("input-available", { status: "pending", chain: WAITING, deadline })]);
  expect(screen.getByRole("timer").textContent).toBe("Time left: 1:00");
  update([moved("output-error", { status: "denied", chain: DENIED, deadline })]);
  expect(screen.queryByRole("timer")).toBeNull();
});

test("of two calls each has its own chain", () => {
  const other = call("input-available", { toolCallId: "call-2", input: { amount: 1 } });
  const about = (toolCallId: string, who: string) => ({
    type: "data-adk-approval",
    id: `approval-of-${toolCallId}`,
    data: { toolCallId, status: "pending", chain: [{ approvers: [who], status: "waiting" }] },
  });
  show([assistant(call("input-available"), other, about("call-2", "eva"), about("call-1", "max"))]);
  const cards = screen.getAllByRole("group", { name: /^process_payment/ });
  expect(cards.map((each) => within(each).getByRole("listitem").textContent)).toEqual(["waits for max", "waits for eva"]);
});
