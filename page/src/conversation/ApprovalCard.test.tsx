import { fireEvent, screen } from "@testing-library/react";
import { describe, expect, test } from "vitest";
import { assistant, asked, button, call, card, fill, press, show } from "./testing.tsx";

const APPROVED = { approvalId: "approval-1", toolCallId: "call-1", approved: true };
const DENIED = { ...APPROVED, approved: false };

describe("deciding", () => {
  test("approve, once", () => {
    const { onDecide } = show([assistant(...asked())]);
    const approve = button(/^Approve Process payment of 50 USD to Hanako/);
    fireEvent.click(approve);
    fireEvent.click(approve);
    expect(onDecide.mock.calls).toEqual([[APPROVED]]);
    expect(card().textContent).toContain("Answer sent");
    expect(screen.queryByRole("button", { name: /^(Approve|Deny)/ })).toBeNull();
  });

  test("deny with a reason", () => {
    const { onDecide } = show([assistant(...asked())]);
    press(/^Deny /);
    expect(onDecide).not.toHaveBeenCalled();
    fill(/reason/i, " Too expensive ");
    press(/^Deny Process payment/);
    expect(onDecide.mock.calls).toEqual([[{ ...DENIED, reason: "Too expensive" }]]);
  });

  test("deny without a reason", () => {
    const { onDecide } = show([assistant(...asked())]);
    press(/^Deny /);
    fireEvent.submit(screen.getByRole("textbox", { name: /reason/i }));
    expect(onDecide.mock.calls).toEqual([[DENIED]]);
  });

  test("think again", () => {
    const { onDecide } = show([assistant(...asked())]);
    press(/^Deny /);
    fireEvent.keyDown(screen.getByRole("textbox", { name: /reason/i }), { key: "Escape" });
    press(/^Deny /);
    press("Back");
    expect(onDecide).not.toHaveBeenCalled();
    expect(button(/^Approve /).disabled).toBe(false);
  });

  test("several at once are told apart", () => {
    const second = {
      toolCallId: "call-2",
      input: { amount: 40, recipient: "Bob", currency: "USD" },
      approval: { id: "approval-2" },
    };
    const { onDecide } = show([assistant(...asked(), call("approval-requested", second))]);
    press(/^Approve Process payment of 40 USD to Bob/);
    expect(onDecide.mock.calls).toEqual([[{ approvalId: "approval-2", toolCallId: "call-2", approved: true }]]);
    expect(button(/^Approve Process payment of 50 USD to Hanako/).disabled).toBe(false);
  });

  test("what somebody else decided takes the place of the question", () => {
    const { update } = show([assistant(...asked())]);
    update([assistant(call("output-denied", { approval: { id: "approval-1", approved: false } }))]);
    expect(screen.queryByRole("button", { name: /^Approve/ })).toBeNull();
    expect(card().textContent).toContain("Denied");
  });
});

describe("focus and keys", () => {
  test("a card that appears takes no focus", () => {
    const { update } = show([assistant("Hello")]);
    const before = document.activeElement;
    update([assistant("Hello", ...asked())]);
    expect(document.activeElement).toBe(before);
  });

  test("A approves and D asks for a reason, inside of the card", () => {
    const { onDecide } = show([assistant(...asked())]);
    fireEvent.keyDown(card(), { key: "d" });
    expect(document.activeElement).toBe(screen.getByRole("textbox", { name: /reason/i }));
    press("Back");
    fireEvent.keyDown(card(), { key: "A" });
    expect(onDecide.mock.calls).toEqual([[APPROVED]]);
  });

  test("no key decides from outside, from a field, held down or with another key", () => {
    const { onDecide } = show([assistant(...asked({ payload: { a: 1 } }))]);
    for (const target of [document.body, screen.getByRole("log"), screen.getByRole("textbox")])
      for (const key of ["a", "d", "Enter"]) fireEvent.keyDown(target, { key });
    fireEvent.keyDown(card(), { key: "a", ctrlKey: true });
    fireEvent.keyDown(card(), { key: "a", altKey: true });
    fireEvent.keyDown(card(), { key: "a", metaKey: true });
    fireEvent.keyDown(card(), { key: "a", repeat: true });
    fireEvent.keyDown(card(), { key: "Enter" });
    fireEvent.keyDown(card(), { key: " " });
    expect(onDecide).not.toHaveBeenCalled();
    expect(screen.queryByRole("textbox", { name: /reason/i })).toBeNull();
  });
});

describe("proposed changes", () => {
  test("there are none where the tool has not asked for any", () => {
    show([assistant(...asked())]);
    expect(screen.queryByRole("textbox")).toBeNull();
  });

  test("what the tool has asked for goes back with the approval, changed or not", () => {
    const { onDecide } = show([assistant(...asked({ payload: { days: 3 } }))]);
    fill(/JSON/, '{"days": 2}');
    press(/^Approve /);
    expect(onDecide.mock.calls).toEqual([[{ ...APPROVED, payload: { days: 2 } }]]);
  });

  test("unchanged, it is what came", () => {
    const { onDecide } = show([assistant(...asked({ payload: { days: 3 } }))]);
    press(/^Approve /);
    expect(onDecide.mock.calls).toEqual([[{ ...APPROVED, payload: { days: 3 } }]]);
  });

  test("what is no JSON cannot be approved, by click or key", () => {
    const { onDecide } = show([assistant(...asked({ payload: { days: 3 } }))]);
    fill(/JSON/, "{");
    expect(button(/^Approve /).disabled).toBe(true);
    fireEvent.keyDown(card(), { key: "a" });
    expect(onDecide).not.toHaveBeenCalled();
    expect(card().textContent).toContain("This is not JSON yet.");
    press(/^Deny /);
    press(/^Deny /);
    expect(onDecide.mock.calls).toEqual([[DENIED]]);
  });
});
