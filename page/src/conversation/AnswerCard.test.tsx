import { screen } from "@testing-library/react";
import { describe, expect, test } from "vitest";
import { asked, assistant, button, fill, press, show } from "./testing.tsx";

const QUESTION = { message: "Which city?", response_schema: null };
const FORM = { type: "tool-adk_request_input", toolCallId: "q", state: "input-available", input: QUESTION };

const CARDS = [
  { kind: "an approval", parts: asked(), group: /^process_payment: /, send: /^Approve / },
  { kind: "a form", parts: [FORM], group: "adk_request_input: Which city?", send: "Answer" },
];

describe.each(CARDS)("$kind", ({ parts, group, send }) => {
  const messages = [assistant(...parts)];
  const open = () => {
    const shown = show(messages);
    if (parts.includes(FORM)) fill("Your answer", "Tokyo");
    return { ...shown, answers: () => [...shown.onDecide.mock.calls, ...shown.onToolOutput.mock.calls] };
  };

  test("that is answered says so, and has the focus of its button", () => {
    open();
    button(send).focus();
    press(send);
    expect(screen.getByRole("status").textContent).toBe("Answer sent");
    expect(screen.queryByRole("button", { name: send })).toBeNull();
    expect(document.activeElement).toBe(screen.getByRole("group", { name: group }));
  });

  test("whose answer did not get through can be answered again", () => {
    const { answers, update } = open();
    press(send);
    update(messages, { status: "error", error: new Error("Failed to fetch") });
    press(send);
    expect(answers()).toHaveLength(2);
  });
});
