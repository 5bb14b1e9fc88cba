import { act, renderHook } from "@testing-library/react";
import type { LiveListener } from "adk-stream-client";
import { expect, it } from "vitest";
import { useLiveProblem, useNoLiveMode } from "./useLiveProblem.ts";

function session() {
  const listeners = new Set<LiveListener>();
  const live = {
    listen(listener: LiveListener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const send: LiveListener = (event) => act(() => listeners.forEach((listener) => listener(event)));
  return { live, listeners, send };
}

it("says why nobody hears, until somebody does", () => {
  const { live, listeners, send } = session();
  const { result, unmount } = renderHook(() => useLiveProblem(live));
  expect(result.current).toBeUndefined();
  send({ type: "error", code: "live-failed", message: "The agent could not answer." });
  expect(result.current).toBe("The agent could not answer.");
  send({ type: "attached", id: "c1" });
  expect(result.current).toBe("The agent could not answer.");
  send({ type: "turn", id: "c1", messageId: "m1" });
  expect(result.current).toBeUndefined();
  unmount();
  expect(listeners.size).toBe(0);
});

it("knows that a model has no live mode when the server says so, and not because a session failed", () => {
  const { live, send } = session();
  const { result } = renderHook(() => useNoLiveMode(live));
  send({ type: "error", code: "live-failed", message: "The agent could not answer." });
  expect(result.current).toBe(false);
  send({ type: "error", code: "no-live-mode", message: "This agent's model has no live mode." });
  expect(result.current).toBe(true);
});
