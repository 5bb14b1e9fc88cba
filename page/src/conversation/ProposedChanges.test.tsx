import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { assistant, asked, button, card, fill, press, show } from "./testing.tsx";

const EDITS = {
  type: "object",
  properties: { amount: { type: "integer" }, note: { type: "string" } },
  required: ["amount"],
};
const APPROVED = { approvalId: "approval-1", toolCallId: "call-1", approved: true };

test("they are offered where the tool takes them, and start with the arguments", () => {
  const { onDecide } = show([assistant(...asked({ edits: EDITS }))]);
  expect(screen.queryByRole("textbox")).toBeNull();
  press("Propose changes");
  expect(screen.getByRole<HTMLInputElement>("textbox", { name: "amount" }).value).toBe("50");
  fill("amount", "40");
  press(/^Approve /);
  expect(onDecide.mock.calls).toEqual([[{ ...APPROVED, payload: { amount: 40 } }]]);
});

test("nothing is proposed where nothing was changed, or was changed back", () => {
  const { onDecide } = show([assistant(...asked({ edits: EDITS }))]);
  press("Propose changes");
  fill("amount", "40");
  fill("amount", "50");
  press(/^Approve /);
  expect(onDecide.mock.calls).toEqual([[APPROVED]]);
});

test("what somebody else has proposed is shown, and agreed to as it is", () => {
  const { onDecide } = show([assistant(...asked({ edits: EDITS, payload: { amount: 30, note: "less" } }))]);
  expect(screen.getByRole<HTMLInputElement>("textbox", { name: /note/ }).value).toBe("less");
  press(/^Approve /);
  expect(onDecide.mock.calls).toEqual([[{ ...APPROVED, payload: { amount: 30, note: "less" } }]]);
});

test.each(["", "x", "1.5", "9007199254740993"])("%j is no whole number, and is not sent", (text) => {
  const { onDecide } = show([assistant(...asked({ edits: EDITS }))]);
  press("Propose changes");
  fill("amount", text);
  expect(button(/^Approve /).disabled).toBe(true);
  expect(card().textContent).toMatch(/must be a|fill this in|too large/);
  press(/^Deny /);
  press(/^Deny /);
  expect(onDecide.mock.calls).toEqual([[{ ...APPROVED, approved: false }]]);
});

test("invisible characters in them are escapes of JSON", () => {
  const payload = { amount: 1, note: "\u202eA" };
  const { onDecide } = show([assistant(...asked({ edits: EDITS, payload }))]);
  expect(screen.getByRole<HTMLTextAreaElement>("textbox", { name: /note/ }).value).toBe('"\\u202eA"');
  fill("amount", "2");
  press(/^Approve /);
  expect(onDecide.mock.calls).toEqual([[{ ...APPROVED, payload: { amount: 2, note: "\u202eA" } }]]);
});

test("a value that is no object is asked for as it is", () => {
  const { onDecide } = show([assistant(...asked({ edits: { type: "number", title: "Rate" } }))]);
  press("Propose changes");
  fill("Rate", "0.5");
  press(/^Approve /);
  expect(onDecide.mock.calls).toEqual([[{ ...APPROVED, payload: 0.5 }]]);
});
