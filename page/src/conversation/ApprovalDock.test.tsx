import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import { ApprovalDock, waitingApprovals } from "./Conversation.tsx";
import { asked, assistant, call, show } from "./testing.tsx";

const FORM = { type: "tool-adk_request_input", toolCallId: "q", state: "input-available", input: {} };

function dock(messages: UIMessage[]): string {
  return render(<ApprovalDock messages={messages} />).container.textContent ?? "";
}

test("it counts approvals and questions, in all messages", () => {
  const older = { ...assistant(...asked()), id: "older" };
  expect(dock([older, assistant("Hello", FORM)])).toContain("2 actions wait for your answer");
  cleanup();
  expect(dock([older])).toContain("1 action waits for your answer");
});

test("it is silent when nothing waits", () => {
  expect(
    dock([
      assistant(
        "Hello",
        call("approval-responded", { approval: { id: "a", approved: true } }),
        call("input-available"),
      ),
    ]),
  ).toBe("");
});

test("Review and Alt+R lead to the first card", () => {
  const messages = [{ ...assistant(...asked()), id: "older" } as UIMessage, assistant(FORM)];
  const { container } = show(messages);
  render(<ApprovalDock messages={messages} />);
  const first = container.querySelector("[aria-label^='process_payment']");
  fireEvent.click(screen.getByRole("button", { name: "Review" }));
  expect(document.activeElement).toBe(first);
  (document.activeElement as HTMLElement).blur();
  fireEvent.keyDown(document.body, { key: "r", code: "KeyR" });
  expect(document.activeElement).not.toBe(first);
  fireEvent.keyDown(document.body, { key: "®", code: "KeyR", altKey: true });
  expect(document.activeElement).toBe(first);
});

test("the approvals that wait are told by their ids", () => {
  const done = call("output-available", { output: {}, approval: { id: "x", approved: true } });
  expect(waitingApprovals([assistant("Hello", done, ...asked({}, { toolCallId: "call-2" }), FORM)])).toEqual([
    { approvalId: "approval-1", toolCallId: "call-2", toolName: "process_payment" },
  ]);
});

test("Alt+R right after sending leads to the card when it comes, unless the person does something else", () => {
  const { update } = show([assistant("Hello")]);
  const { rerender } = render(<ApprovalDock messages={[]} />);
  const comes = (messages: UIMessage[]) => {
    update(messages);
    rerender(<ApprovalDock messages={messages} />);
  };
  const review = () => fireEvent.keyDown(document.body, { key: "r", code: "KeyR", altKey: true });
  const waits = [assistant(...asked())];
  review();
  fireEvent.keyDown(document.body, { key: "a" });
  comes(waits);
  expect(document.activeElement).toBe(document.body);
  comes([]);
  review();
  fireEvent.pointerDown(document.body);
  comes(waits);
  expect(document.activeElement).toBe(document.body);
  comes([]);
  fireEvent.keyDown(document.body, { key: "Alt", altKey: true });
  review();
  comes(waits);
  expect(document.activeElement?.getAttribute("aria-label")).toMatch(/^process_payment/);
  (document.activeElement as HTMLElement).blur();
  comes([]);
  comes(waits);
  expect(document.activeElement).toBe(document.body);
});
