import { act, cleanup, render, screen } from "@testing-library/react";
import type { LiveChatTransport, LiveListener } from "adk-stream-client";
import { afterEach, expect, it } from "vitest";
import { LiveBar } from "./LiveBar.tsx";

afterEach(cleanup);

it("says in which page the microphone is open, and does not open it here meanwhile", () => {
  const listeners = new Set<LiveListener>();
  const live = {
    listen: (listener: LiveListener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  } as unknown as LiveChatTransport;
  const tell = (owner: "other" | null, name?: string) =>
    act(() => {
      for (const listener of listeners) listener({ type: "voice", id: "c1", owner, name });
    });
  const isDisabled = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name }).disabled;
  render(<LiveBar live={live} isBusy={false} onReconnect={() => {}} />);
  tell("other", "Android");
  screen.getByText("The microphone is open in another page of this chat (Android). Close it there to speak here.");
  expect([isDisabled("Hold to talk"), isDisabled("Open microphone")]).toEqual([true, true]);
  tell(null);
  screen.getByText(/^Write, or hold to talk/);
  expect([isDisabled("Hold to talk"), isDisabled("Open microphone")]).toEqual([false, false]);
});
