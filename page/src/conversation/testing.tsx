/** For tests: a conversation on the screen, and what was done with it. */
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import type { UIMessage } from "ai";
import { afterEach, vi } from "vitest";
import { Conversation, type ConversationProps } from "./Conversation.tsx";

afterEach(cleanup);

export const USD_50 = { amount: 50, recipient: "Hanako", currency: "USD" };

export function user(...parts: unknown[]): UIMessage {
  return { id: "user-1", role: "user", parts: parts.map(asPart) } as UIMessage;
}

/** Words are text parts. */
export function assistant(...parts: unknown[]): UIMessage {
  return { id: "assistant-1", role: "assistant", parts: parts.map(asPart) } as UIMessage;
}

function asPart(part: unknown): unknown {
  return typeof part === "string" ? { type: "text", text: part, state: "done" } : part;
}

export function call(state: string, more: object = {}): object {
  return { type: "tool-process_payment", toolCallId: "call-1", state, input: USD_50, ...more };
}

/** A call that waits for a person, and what the person is told. */
export function asked(about: object = {}, more: object = {}): object[] {
  return [
    call("approval-requested", { approval: { id: "approval-1" }, ...more }),
    { type: "data-adk-approval", id: "approval-1", data: about },
  ];
}

export function show(messages: UIMessage[], more: Partial<ConversationProps> = {}) {
  const actions = {
    onDecide: vi.fn<ConversationProps["onDecide"]>(),
    onToolOutput: vi.fn<ConversationProps["onToolOutput"]>(),
    onRetry: vi.fn<ConversationProps["onRetry"]>(),
    onRegenerate: vi.fn<ConversationProps["onRegenerate"]>(),
    onEdit: vi.fn<ConversationProps["onEdit"]>(),
    readTrail: vi.fn<ConversationProps["readTrail"]>(),
  };
  const gutter: ConversationProps["gutter"] = (messageId, partKey) => <i data-ticks={`${messageId} ${partKey}`} />;
  const page = (changed: UIMessage[], changes: Partial<ConversationProps> = {}) => (
    <Conversation
      messages={changed}
      status="ready"
      error={undefined}
      isRetryable
      mode="chat"
      gutter={gutter}
      {...actions}
      {...more}
      {...changes}
    />
  );
  const { container, rerender } = render(page(messages));
  const update = (changed: UIMessage[], changes?: Partial<ConversationProps>) => rerender(page(changed, changes));
  return { ...actions, container, update };
}

/** The card of `call`. */
export function card(): HTMLElement {
  return screen.getByRole("group", { name: /^process_payment: / });
}

export function button(name: string | RegExp): HTMLButtonElement {
  return screen.getByRole<HTMLButtonElement>("button", { name });
}

export function press(name: string | RegExp): void {
  fireEvent.click(button(name));
}

export function fill(name: string | RegExp, value: string): void {
  fireEvent.change(screen.getByRole("textbox", { name }), { target: { value } });
}

export function words(): string {
  return screen.getByRole("log").textContent ?? "";
}
