import { fireEvent, screen, within } from "@testing-library/react";
import type { UIMessage } from "ai";
import { describe, expect, test, vi } from "vitest";
import { assistant, asked, call, fill, press, show, user, words } from "./testing.tsx";

const DOT = "data:image/png;base64,iVBORw0KGgo=";

describe("the user's messages", () => {
  test("words are shown as they were written, not as Markdown", () => {
    show([user("**not bold**\nsecond line")]);
    expect(within(screen.getByRole("article", { name: "You" })).getByText(/\*\*not bold\*\*/)).toBeDefined();
  });

  test("images are seen, other files can be saved", () => {
    const pdf = {
      type: "file",
      mediaType: "application/pdf",
      url: "data:application/pdf;base64,AA==",
      filename: "plan.pdf",
    };
    show([user({ type: "file", mediaType: "image/png", url: DOT, filename: "dot.png" }, pdf, "Look")]);
    expect(screen.getByRole<HTMLImageElement>("img", { name: "dot.png" }).src).toBe(DOT);
    expect(screen.getByRole<HTMLAnchorElement>("link", { name: "plan.pdf" }).download).toBe("plan.pdf");
  });

  test("what is still being heard is marked", () => {
    show([user({ type: "text", text: "Book some", state: "streaming" })], { mode: "live" });
    expect(screen.getByRole("img", { name: "still listening" })).toBeDefined();
  });

  test("can be put differently", () => {
    const { onEdit } = show([user("Hello")]);
    press("Edit");
    expect(screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Edited text" }).value).toBe("Hello");
    fill("Edited text", "Good morning");
    fireEvent.keyDown(screen.getByRole("textbox", { name: "Edited text" }), { key: "Enter" });
    expect(onEdit.mock.calls).toEqual([["user-1", "Good morning"]]);
    expect(screen.queryByRole("textbox")).toBeNull();
  });

  test("stay as they are when the change is given up, or empty", () => {
    const { onEdit } = show([user("Hello")]);
    press("Edit");
    fill("Edited text", "  ");
    press("Ask again");
    fireEvent.keyDown(screen.getByRole("textbox", { name: "Edited text" }), { key: "Enter", shiftKey: true });
    fireEvent.keyDown(screen.getByRole("textbox", { name: "Edited text" }), { key: "Escape" });
    expect(onEdit).not.toHaveBeenCalled();
    expect(words()).toContain("Hello");
  });
});

describe("what can be done with messages", () => {
  test("the last answer can be had again", () => {
    const older = { ...assistant("older"), id: "older" } as UIMessage;
    const { onRegenerate } = show([older, user("Again?"), assistant("newer")]);
    press("Regenerate");
    expect(onRegenerate.mock.calls).toEqual([["assistant-1"]]);
  });

  test.each([
    ["while an answer comes", { status: "streaming" }],
    ["in a live session", { mode: "live" }],
  ] as const)("nothing can be changed %s", (_, props) => {
    show([user("Hello"), assistant("Hi")], props);
    expect(screen.queryByRole("button", { name: "Edit" })).toBeNull();
    expect(screen.queryByRole("button", { name: "Regenerate" })).toBeNull();
  });

  test("words can be copied as they were written", async () => {
    const writeText = vi.spyOn(navigator.clipboard, "writeText").mockResolvedValue();
    show([assistant("**one**", call("output-available", { output: {} }), "two")]);
    press("Copy");
    expect(await screen.findByRole("button", { name: "Copied" })).toBeDefined();
    expect(writeText.mock.calls).toEqual([["**one**\n\ntwo"]]);
  });

  test("a page that may not copy says so", async () => {
    vi.spyOn(navigator.clipboard, "writeText").mockRejectedValue(new Error("no"));
    show([assistant("one")]);
    press("Copy");
    expect(await screen.findByRole("button", { name: "Copying is not allowed here" })).toBeDefined();
  });
});

describe("what is under way, and what went wrong", () => {
  test("the wait for the first word is shown", () => {
    const { update } = show([user("Hello")], { status: "submitted" });
    expect(words()).toContain("The agent is on it");
    update([user("Hello"), assistant({ type: "step-start" })], { status: "streaming" });
    expect(words()).toContain("The agent is on it");
    update([user("Hello"), assistant({ type: "step-start" }, "Hi")], { status: "streaming" });
    expect(words()).not.toContain("The agent is on it");
    expect(screen.getByRole("log").getAttribute("aria-busy")).toBe("true");
  });

  test("an error is an alert with a way to try again", () => {
    const { onRetry } = show([user("Hello")], { status: "error", error: new Error("Not now.") });
    expect(screen.getByRole("alert").textContent).toContain("Not now.");
    press("Retry");
    expect(onRetry).toHaveBeenCalledOnce();
  });

  test.each([new Error(" "), undefined])("an error that says nothing is told all the same: %s", (error) => {
    show([user("Hello")], { status: "error", error });
    expect(screen.getByRole("alert").textContent).toContain("Something went wrong.");
  });

  test("new functions of the app are called without drawing all messages again", () => {
    const first = vi.fn<(messageId: string, partKey: string) => null>(() => null);
    const messages = [assistant("Hello")];
    const { update } = show(messages, { gutter: first });
    const drawn = first.mock.calls.length;
    const onRegenerate = vi.fn<(messageId: string) => void>();
    update(messages, { onRegenerate });
    expect(first.mock.calls.length).toBe(drawn);
    press("Regenerate");
    expect(onRegenerate).toHaveBeenCalledOnce();
  });

  test("an approval of an older message is still there after newer ones", () => {
    const older = { ...assistant(...asked()), id: "older" } as UIMessage;
    show([older, user("Something else"), assistant("Sure")]);
    expect(screen.getByRole("button", { name: /^Approve / })).toBeDefined();
  });

  test("a list that somebody has scrolled up stays, and offers the way back", () => {
    const { update } = show([assistant("one")]);
    const list = screen.getByRole("log");
    for (const [name, value] of [
      ["scrollHeight", 1_000],
      ["clientHeight", 200],
    ] as const)
      Object.defineProperty(list, name, { value });
    update([assistant("one two")]);
    expect(list.scrollTop).toBe(1_000);
    list.scrollTop = 100;
    fireEvent.scroll(list);
    update([assistant("one two three")]);
    expect(list.scrollTop).toBe(100);
    press("Go to the end");
    expect(list.scrollTop).toBe(1_000);
    expect(screen.queryByRole("button", { name: "Go to the end" })).toBeNull();
  });
});

test("where trying again makes no sense, there is no Retry", () => {
  const failed = { status: "error", error: new Error("This agent's model has no live mode.") } as const;
  show([user("Hi")], { ...failed, isRetryable: false });
  expect(screen.getByRole("alert").textContent).toContain("no live mode");
  expect(screen.queryByRole("button", { name: "Retry" })).toBeNull();
});
