import { screen } from "@testing-library/react";
import { describe, expect, test } from "vitest";
import { assistant, asked, call, show, words } from "./testing.tsx";

function card(): HTMLElement {
  return screen.getByRole("group", { name: /^process_payment: / });
}

describe("each state of a call says so", () => {
  test.each([
    ["arguments that are being read", call("input-streaming", { input: { amount: 5 } }), "Reading arguments"],
    ["a tool of the server's", call("input-available"), "Running"],
    ["an answer that was sent", call("approval-responded", { approval: { id: "a", approved: true } }), "Answer sent"],
    [
      "a first word of a long-running tool",
      call("output-available", { output: { status: "pending" }, preliminary: true }),
      "Working",
    ],
    ["a result", call("output-available", { output: {} }), "Completed"],
    ["an error", call("output-error", { errorText: "Insufficient funds" }), "Failed"],
    [
      "a call that the model took back",
      call("output-error", { errorText: "This call was not run: the model withdrew it before it began." }),
      "Withdrawn",
    ],
    ["a denial", call("output-denied", { approval: { id: "a", approved: false } }), "Denied"],
  ])("%s", (_, part, expected) => {
    show([assistant(part)], { status: "streaming" });
    expect(card().textContent).toContain(expected);
    expect(card().textContent?.includes("Completed")).toBe(expected === "Completed");
  });

  test("a call of the browser's", () => {
    show([assistant({ type: "tool-change_bgm", toolCallId: "c", state: "input-available", input: { track: 1 } })]);
    expect(words()).toContain("Running in this browser");
  });

  test("a state that this page does not know yet", () => {
    show([assistant(call("output-cancelled"))]);
    expect(card().textContent).toContain("output-cancelled");
  });

  test("arguments that nobody will finish", () => {
    show([assistant(call("input-streaming"))], { status: "ready" });
    expect(card().textContent).toContain("Not finished");
  });
});

test("arguments are shown as they come", () => {
  const { update } = show([assistant(call("input-streaming", { input: { amount: 5 } }))], { status: "streaming" });
  expect(card().textContent).toContain("amount: 5");
  update([assistant(call("input-streaming", { input: { amount: 50, recipient: "Han" } }))]);
  expect(card().textContent).toContain("amount: 50, recipient: Han");
});

test("a payment shows the new balance", () => {
  show([
    assistant(
      call("output-available", { output: { message: "Sent 50 USD to Hanako.", balance: 950, currency: "USD" } }),
    ),
  ]);
  expect(card().textContent).toContain("Sent 50 USD to Hanako. New balance: 950 USD");
});

test("the result is folded, and whole", () => {
  show([assistant(call("output-available", { output: { deep: { list: [1, 2] }, text: "<b>" } }))]);
  expect(card().querySelector("details")?.open).toBe(false);
  expect(card().querySelector("details")?.textContent).toContain('"list": [');
  expect(card().querySelector("details b")).toBeNull();
});

test("a failure tells why without being opened", () => {
  show([assistant(call("output-error", { errorText: "Insufficient funds" }))]);
  expect(screen.getByText("Insufficient funds").closest("details")).toBeNull();
});

test("characters that are not seen are marked, in the name, the arguments and what came of it", () => {
  const part = { type: "tool-process_payment: \u200b", input: { "to\u200b": "eve\u200b" }, errorText: "No eve\u200b" };
  const { container } = show([assistant(call("output-error", part))]);
  expect(container.innerHTML).not.toContain("\u200b");
  const marks = screen.getAllByRole("img", { name: "invisible character U+200B", hidden: true });
  expect(marks).toHaveLength(6); // the name, twice in one line, twice in the list, once in the error
});

test("a denial has the word, and the reason", () => {
  show([assistant(call("output-denied", { approval: { id: "a", approved: false, reason: "Too expensive" } }))]);
  expect(screen.getByText("This was denied: Too expensive")).toBeDefined();
});

test("a tool that is only known at run time has its own name", () => {
  show([
    assistant({
      type: "dynamic-tool",
      toolName: "code_execution",
      toolCallId: "c",
      state: "output-available",
      input: { code: "1" },
      output: 1,
    }),
  ]);
  expect(screen.getByRole("group", { name: "code_execution: Completed" })).toBeDefined();
});

test("a call is one card from its first chunk to its result", () => {
  const { update } = show([assistant(call("input-streaming"))], { status: "streaming" });
  const cards = () => screen.getAllByRole("group", { name: /^process_payment/ });
  expect(cards()).toHaveLength(1);
  update([assistant(...asked())]);
  expect(cards()).toHaveLength(1);
  update([assistant(call("output-available", { output: {} }))]);
  expect(cards()).toHaveLength(1);
});
