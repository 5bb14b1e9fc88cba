import { Chat } from "@ai-sdk/react";
import { act, renderHook, waitFor } from "@testing-library/react";
import type { UIMessage } from "ai";
import { describe, expect, it, vi } from "vitest";
import { ChatsApi } from "./api.ts";
import { answer, asking, open, said, server, turn, waiting, words } from "./testing.ts";
import { useOthersWatch } from "./useRecord.ts";

describe("a look at the record", () => {
  it("asks for nothing before the first turn", async () => {
    const { result } = open();
    document.dispatchEvent(new Event("visibilitychange"));
    await act(async () => {});
    expect(result.current.chat.status).toBe("ready");
    expect(server.asked).toEqual([]);
  });

  it("loses nothing that is said meanwhile", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const answers: (() => void)[] = [];
    const { result } = open([asking, waiting("a1", "c1")]);
    await act(() => vi.advanceTimersByTimeAsync(1_000));
    const { fetch } = server;
    vi.stubGlobal("fetch", async (...asked: Parameters<typeof fetch>) => {
      const answer = await fetch(...asked);
      if (String(asked[0]).endsWith("/messages")) await new Promise<void>((resolve) => answers.push(resolve));
      return answer;
    });
    server.record = [asking, said("a1", "assistant", "Denied.")];
    await act(() => vi.advanceTimersByTimeAsync(3_000));
    expect(answers).toHaveLength(1);
    server.turns = [turn(...words("a2", "Hello"))];
    await act(() => result.current.chat.sendMessage({ text: "Hi" }));
    answers[0]!();
    await act(() => vi.advanceTimersByTimeAsync(100));
    expect(result.current.chat.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    expect(result.current.chat.messages[2]!.parts).toMatchObject([{ text: "Hi" }]);
  });

  it("keeps what is shown while the record lacks an answer that cannot be read", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const { result, id } = open([asking, waiting("a1", "c1")]);
    server.record = [asking];
    server.running = { id: "a1" };
    await act(() => vi.advanceTimersByTimeAsync(4_000));
    expect(server.asked).toEqual([`GET /${id}/messages`, `GET /${id}/stream?message=a1`, `GET /${id}/messages`]);
    expect(result.current.chat.messages[1]).toEqual(waiting("a1", "c1"));
  });

  it("reads what comes of a decision made elsewhere while it is told", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const { result, id } = open([asking, waiting("a1", "c1")]);
    await act(() => vi.advanceTimersByTimeAsync(1_000));
    server.running = answer("a1", "Being told");
    server.record = [asking]; // without the answer that is running
    await act(() => vi.advanceTimersByTimeAsync(3_000));
    expect(server.asked.filter((asked) => asked === `GET /${id}/stream?message=a1`)).toHaveLength(1);
    expect(result.current.chat.messages[1]!.parts.at(-1)).toMatchObject({ text: "Being told" });
  });
});

describe("a decision", () => {
  it("made elsewhere appears, while nothing is said here", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const { result } = open([asking, waiting("a1", "c1")]);
    await act(() => vi.advanceTimersByTimeAsync(3_000));
    expect(result.current.chat.messages[1]).toEqual(waiting("a1", "c1"));
    server.record = [asking, said("a1", "assistant", "Denied.")];
    await act(() => vi.advanceTimersByTimeAsync(3_000));
    await waitFor(() => expect(result.current.chat.messages[1]!.parts).toMatchObject([{ text: "Denied." }]));
    const asked = server.asked.length;
    await act(() => vi.advanceTimersByTimeAsync(9_000));
    expect(server.asked).toHaveLength(asked); // nothing waits any more
  });

  it("that another page made at the same moment shows the words that went there", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const result = { type: "tool-output-available", toolCallId: "c1", output: { paid: true } };
    const end = { type: "finish", finishReason: "stop", messageMetadata: { modelVersion: "m" } };
    const step = [{ type: "start-step" }, { type: "finish-step" }, end];
    server.turns = [turn({ type: "start", messageId: "a1" }, result, ...step)];
    const { result: page } = open([asking, waiting("a1", "c1")]);
    await act(() => vi.advanceTimersByTimeAsync(1_000));
    await act(() => page.current.decide({ approvalId: "approval-c1", toolCallId: "c1", approved: true }));
    server.record = [asking, said("a1", "assistant", "Paid.")];
    await act(() => vi.advanceTimersByTimeAsync(2_000));
    expect(page.current.chat.messages).toEqual(server.record);
  });
});

describe("what others decide", () => {
  const link = (status: string) => ({ approvers: ["max"], status });
  const chained = (status: string, ...links: string[]): UIMessage => ({
    id: "a1",
    role: "assistant",
    parts: [
      { type: "tool-pay", toolCallId: "c1", state: "input-available", input: {} },
      { type: "data-adk-approval", id: "q1", data: { toolCallId: "c1", status, chain: links.map(link) } },
    ],
  });

  it("moves by itself, link by link, and then the answer goes on", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const { result } = open([asking, chained("pending", "waiting", "pending")]);
    await act(() => vi.advanceTimersByTimeAsync(1_000));
    server.record = [asking, chained("pending", "approved", "waiting")];
    await act(() => vi.advanceTimersByTimeAsync(3_000));
    expect(result.current.chat.messages).toEqual(server.record);
    server.record = [asking];
    server.running = answer("a1", "Paid.");
    await act(() => vi.advanceTimersByTimeAsync(3_000));
    expect(result.current.chat.messages[1]!.parts.at(-1)).toMatchObject({ text: "Paid." });
  });

  it("moves in a live session too, where nothing else is taken from the record", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const spoken = said("a2", "assistant", "Not stored yet");
    const chat = new Chat<UIMessage>({ id: "c", messages: [asking, chained("pending", "waiting"), spoken] });
    server.record = [chained("pending", "waiting")];
    renderHook(() => useOthersWatch({ api: new ChatsApi("https://example.test/api/chat"), chat, isWatching: true }));
    const before = chat.messages;
    await act(() => vi.advanceTimersByTimeAsync(3_000));
    expect(chat.messages).toBe(before);
    server.record = [chained("approved", "approved")];
    await act(() => vi.advanceTimersByTimeAsync(3_000));
    expect(chat.messages).toEqual([asking, chained("approved", "approved"), spoken]);
    const asked = server.asked.length;
    await act(() => vi.advanceTimersByTimeAsync(9_000));
    expect(server.asked).toHaveLength(asked); // they have decided
  });
});
