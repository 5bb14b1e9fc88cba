import { act, cleanup, renderHook } from "@testing-library/react";
import type { LiveListener } from "adk-stream-client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { useSpokenShare } from "./useSpokenShare.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

function live() {
  let tell: LiveListener = () => {};
  const listen = (listener: LiveListener) => {
    tell = listener;
    return () => {};
  };
  const { result } = renderHook(() => useSpokenShare({ listen }, answering));
  const voice = (ms: number) => tell({ type: "audio", id: "c", rate: 24_000, pcm: new ArrayBuffer(48 * ms) });
  return { result, voice, clear: () => act(() => tell({ type: "audio-clear", id: "c" })) };
}
const answering = () => "a1";

it("an answer that is cut off in the middle was heard in half", () => {
  const { result, voice, clear } = live();
  voice(1_000);
  voice(1_000);
  vi.advanceTimersByTime(1_080);
  clear();
  expect(result.current("a1")).toBeCloseTo(0.5);
  expect(result.current("a2")).toBeUndefined();
});

it("an answer that was over before the interruption was heard", () => {
  const { result, voice, clear } = live();
  voice(500);
  vi.advanceTimersByTime(600);
  clear();
  expect(result.current("a1")).toBeUndefined();
});

it("nothing is known of an answer without a voice, and an older answer does not count", () => {
  const { result, voice, clear } = live();
  clear();
  expect(result.current("a1")).toBeUndefined();
  voice(500);
  vi.advanceTimersByTime(5_000);
  voice(1_000);
  vi.advanceTimersByTime(330);
  clear();
  expect(result.current("a1")).toBeCloseTo(0.25);
});
