import { Chat } from "@ai-sdk/react";
import { act, renderHook } from "@testing-library/react";
import type { LiveChatTransport } from "adk-stream-client";
import { expect, it } from "vitest";
import type { Mode } from "../wire/log.ts";
import { useLiveBinding } from "./useLiveBinding.ts";

function bind(mode: Mode) {
  const done: string[] = [];
  const live = {
    attach: (id: string) => {
      done.push(`attach ${id}`);
      return () => void done.push(`detach ${id}`);
    },
    listen: () => () => {},
    close: () => void done.push("close"),
  } as unknown as LiveChatTransport;
  const chat = new Chat({ id: "c1" });
  return { done, ...renderHook((props) => useLiveBinding({ chat, live, ...props }), { initialProps: { mode } }) };
}

it("a chat is attached to its live session as long as it is live", () => {
  const { done, rerender, unmount } = bind("chat");
  expect(done).toEqual([]);
  rerender({ mode: "live" });
  expect(done).toEqual(["attach c1"]);
  rerender({ mode: "chat" });
  expect(done).toEqual(["attach c1", "detach c1", "close"]);
  unmount();
  expect(done).toHaveLength(3);
});

it("a new connection takes the place of the old one", () => {
  const { done, result, unmount } = bind("live");
  act(() => result.current.reconnect());
  expect(done).toEqual(["attach c1", "detach c1", "close", "attach c1"]);
  unmount();
  expect(done.slice(4)).toEqual(["detach c1", "close"]);
});
