import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { useRef, useState } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { Composer } from "./Composer.tsx";
import { useShortcuts } from "./useShortcuts.ts";

afterEach(cleanup);

const told = { send: vi.fn(), stop: vi.fn(), attach: vi.fn(), inspect: vi.fn() };

function Page({ isBusy = false, files = [] as File[] }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [shown] = useState(files);
  useShortcuts({ composer: field, onInspect: told.inspect, onStop: isBusy ? told.stop : undefined });
  return (
    <>
      <input aria-label="Reason" />
      <button type="button">Approve payment</button>
      <Composer
        field={field}
        files={shown}
        problem={undefined}
        isBusy={isBusy}
        onAttach={told.attach}
        onRemove={() => {}}
        onSend={told.send}
        onStop={told.stop}
      />
    </>
  );
}

function open(props: Parameters<typeof Page>[0] = {}) {
  for (const listener of Object.values(told)) listener.mockReset();
  render(<Page {...props} />);
  const message = screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Message" });
  return { message, write: (text: string) => fireEvent.change(message, { target: { value: text } }) };
}

it("Enter sends what was written, without its margins, and empties the field", () => {
  const { message, write } = open();
  expect(message.placeholder).toBe("Type your message...");
  write("  Hello\nthere ");
  fireEvent.keyDown(message, { key: "Enter" });
  expect(told.send).toHaveBeenCalledExactlyOnceWith("Hello\nthere");
  expect(message.value).toBe("");
});

it("Enter sends nothing with Shift, in the middle of a word of an input method, or when nothing was written", () => {
  const { message, write } = open();
  fireEvent.keyDown(message, { key: "Enter" });
  write("東京");
  fireEvent.keyDown(message, { key: "Enter", shiftKey: true });
  fireEvent.keyDown(message, { key: "Enter", isComposing: true });
  expect(told.send).not.toHaveBeenCalled();
  expect(message.value).toBe("東京");
});

it("while the agent answers, Stop is in the place of Send, and what is written stays", () => {
  const { message, write } = open({ isBusy: true });
  write("Next");
  fireEvent.keyDown(message, { key: "Enter" });
  expect(told.send).not.toHaveBeenCalled();
  expect(screen.queryByRole("button", { name: "Send" })).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Stop" }));
  expect(told.stop).toHaveBeenCalledOnce();
  expect(message.value).toBe("Next");
});

it("files alone can be sent, and files that are pasted are attached", () => {
  const file = new File(["x"], "x.png", { type: "image/png" });
  const { message } = open({ files: [file] });
  fireEvent.click(screen.getByRole("button", { name: "Send" }));
  expect(told.send).toHaveBeenCalledExactlyOnceWith("");
  fireEvent.paste(message, { clipboardData: { files: [file] } });
  expect(told.attach).toHaveBeenCalledExactlyOnceWith([file]);
});

it("Escape stops from the composer and from the page, but not from a field in which something else is written", () => {
  const { message } = open({ isBusy: true });
  fireEvent.keyDown(screen.getByRole("textbox", { name: "Reason" }), { key: "Escape" });
  expect(told.stop).not.toHaveBeenCalled();
  fireEvent.keyDown(message, { key: "Escape" });
  fireEvent.keyDown(document.body, { key: "Escape" });
  expect(told.stop).toHaveBeenCalledTimes(2);
});

it("a slash goes to the composer unless it is written somewhere", () => {
  const { message } = open();
  const reason = screen.getByRole("textbox", { name: "Reason" });
  reason.focus();
  fireEvent.keyDown(reason, { key: "/" });
  expect(document.activeElement).toBe(reason);
  reason.blur();
  fireEvent.keyDown(document.body, { key: "/" });
  expect(document.activeElement).toBe(message);
});

it("Ctrl+I opens the inspector from anywhere; letters alone do nothing", () => {
  const { message } = open();
  for (const key of ["a", "d", "i", "n"]) fireEvent.keyDown(document.body, { key });
  expect(told.inspect).not.toHaveBeenCalled();
  fireEvent.keyDown(message, { key: "i", ctrlKey: true });
  expect(told.inspect).toHaveBeenCalledOnce();
});
