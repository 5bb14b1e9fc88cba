import { act, waitFor } from "@testing-library/react";
import type { UIMessage } from "ai";
import { describe, expect, it, vi } from "vitest";
import { asking, type Chunk, open, said, server, stream, turn, waiting, words } from "./testing.ts";

describe("a conversation", () => {
  it("sends only the message that says something new", async () => {
    server.turns = [turn(...words("a2", "Fine."))];
    const { result, onTurn } = open([said("u1", "user", "Hi"), said("a1", "assistant", "Hello")]);
    await act(() => result.current.chat.sendMessage({ text: "How are you?" }));
    expect(server.bodies[0]!.messages).toMatchObject([{ role: "user", parts: [{ text: "How are you?" }] }]);
    await waitFor(() => expect(result.current.chat.messages.at(-1)).toMatchObject({ id: "a2" }));
    expect(onTurn).toHaveBeenCalled();
  });

  it("tells of a server that restarts in its words, and asks for the answer again", async () => {
    const restart = { type: "error", errorText: "The server restarts. Resume the answer, or ask for it again." };
    server.turns = [turn({ type: "start", messageId: "a1" }, restart), turn(...words("a2", "Hello"))];
    const { result } = open();
    await act(() => result.current.chat.sendMessage({ text: "Hi" }));
    expect(result.current.chat.status).toBe("error");
    expect(result.current.error?.message).toBe(restart.errorText);
    await act(() => result.current.retry());
    expect(server.bodies.map(({ trigger }) => trigger)).toEqual(["submit-message", "regenerate-message"]);
    await waitFor(() => expect(result.current.chat.messages.at(-1)).toMatchObject({ id: "a2" }));
    expect(result.current.error).toBeUndefined();
  });

  it("asks for nothing before the first turn", async () => {
    const { result } = open();
    document.dispatchEvent(new Event("visibilitychange"));
    await act(async () => {});
    expect(result.current.chat.status).toBe("ready");
    expect(server.asked).toEqual([]);
  });

  it("is stopped on the server, then here, and shows what the server has kept", async () => {
    const endless = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const chunk = (value: Chunk) =>
          controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(value)}\n\n`));
        chunk({ type: "start", messageId: "a1" });
        chunk({ type: "start-step" });
        chunk({ type: "tool-input-available", toolCallId: "c", toolName: "pay", input: {} });
      },
    });
    server.turns = [() => stream(endless)];
    const { result, id } = open();
    act(() => void result.current.chat.sendMessage({ text: "Pay" }));
    await waitFor(() => expect(result.current.chat.status).toBe("streaming"));
    const sealed = { type: "tool-pay", toolCallId: "c", state: "output-error", input: {}, errorText: "Stopped." };
    server.record = [asking, { id: "a1", role: "assistant", parts: [sealed] as UIMessage["parts"] }];
    await act(() => result.current.stop());
    expect(server.asked).toContain(`POST /${id}/stop`);
    expect(result.current.chat.status).toBe("ready");
    await waitFor(() => expect(result.current.chat.messages.at(-1)!.parts).toMatchObject([{ state: "output-error" }]));
  });

  it("loses nothing that is said while the record is looked at", async () => {
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

  it("is stopped here though the server cannot be reached", async () => {
    server.turns = [() => stream(new ReadableStream())];
    const { result } = open();
    act(() => void result.current.chat.sendMessage({ text: "Pay" }));
    await waitFor(() => expect(result.current.isBusy).toBe(true));
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
    await act(() => result.current.stop());
    expect(result.current.isBusy).toBe(false);
  });

  it("shows again what the server refuses to take back", async () => {
    const refusal = { error: { code: "malformed", message: "What was said in a live session cannot be taken back." } };
    server.turns = [() => Response.json(refusal, { status: 400 })];
    const before = [asking, said("a1", "assistant", "Paid.")];
    const { result } = open(before);
    await act(async () => result.current.regenerate("a1"));
    await waitFor(() => expect(result.current.error?.message).toBe(refusal.error.message));
    await waitFor(() => expect(result.current.chat.messages).toEqual(before));
  });

  it("keeps the files of a message that is edited", async () => {
    const file = { type: "file" as const, mediaType: "image/png", url: "data:image/png;base64,AA==" };
    server.turns = [turn(...words("a2", "Fine."))];
    const { result } = open([{ id: "u1", role: "user", parts: [file, { type: "text", text: "Look" }] }]);
    await act(async () => result.current.edit("u1", "Look again"));
    await waitFor(() => expect(server.bodies).toHaveLength(1));
    expect(server.bodies[0]!.messages).toMatchObject([{ id: "u1", parts: [file, { text: "Look again" }] }]);
  });
});

describe("a decision", () => {
  it("is sent once all calls of the last message are decided, with what was proposed", async () => {
    server.turns = [turn(...words("a1", "Paid."))];
    const { result } = open([asking, waiting("a1", "c1", "c2")]);
    await act(() =>
      result.current.decide({ approvalId: "approval-c1", toolCallId: "c1", approved: false, reason: "No" }),
    );
    expect(server.bodies).toHaveLength(0);
    const payload = { amount: 2 };
    await act(() => result.current.decide({ approvalId: "approval-c2", toolCallId: "c2", approved: true, payload }));
    await waitFor(() => expect(server.bodies).toHaveLength(1));
    expect(server.bodies[0]!.messages[0]!.parts.slice(1)).toMatchObject([
      { state: "approval-responded", approval: { approved: false, reason: "No" } },
      { state: "approval-responded", approval: { approved: true, payload } },
    ]);
  });

  it("about an older message is sent at once, as that message", async () => {
    server.turns = [turn(...words("a1", "Paid."))];
    const { result } = open([asking, waiting("a1", "c1"), said("u2", "user", "Hi"), said("a2", "assistant", "Hello")]);
    await act(() => result.current.decide({ approvalId: "approval-c1", toolCallId: "c1", approved: true }));
    await waitFor(() => expect(server.bodies).toHaveLength(1));
    expect(server.bodies[0]).toMatchObject({ messageId: "a1", messages: [{ id: "a1" }] });
    await waitFor(() => expect(result.current.chat.messages[1]!.parts.at(-1)).toMatchObject({ text: "Paid." }));
    expect(result.current.chat.messages).toHaveLength(4);
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
});

it("the output of a form in an older message is sent as that message, and the record shown", async () => {
  const form = { type: "tool-ask", toolCallId: "c1", state: "input-available", input: {} };
  const older: UIMessage = { id: "a1", role: "assistant", parts: [form] as UIMessage["parts"] };
  server.turns = [turn(...words("a1", "Thanks."))];
  const { result } = open([asking, older, said("u2", "user", "Hi"), said("a2", "assistant", "Hello")]);
  const answered = said("a1", "assistant", "Thanks.");
  server.record = [asking, answered, said("u2", "user", "Hi"), said("a2", "assistant", "Hello")];
  await act(() => result.current.giveOutput({ toolName: "ask", toolCallId: "c1", output: { size: 3 } }));
  expect(server.bodies).toMatchObject([
    { messageId: "a1", messages: [{ id: "a1", parts: [{ state: "output-available", output: { size: 3 } }] }] },
  ]);
  await waitFor(() => expect(result.current.chat.messages[1]).toEqual(answered));
});

describe("a retry", () => {
  it("of a turn that never got there says it again", async () => {
    server.turns = [() => Promise.reject(new TypeError("Failed to fetch")) as never, turn(...words("a1", "Hello"))];
    const { result } = open();
    await act(() => result.current.chat.sendMessage({ text: "Hi" }));
    expect(result.current.error?.message).toMatch(/cannot be reached/);
    server.record = [];
    await act(() => result.current.retry());
    expect(server.bodies.map(({ trigger }) => trigger)).toEqual(["submit-message", "regenerate-message"]);
    await waitFor(() => expect(result.current.chat.messages.at(-1)).toMatchObject({ id: "a1" }));
  });

  it("of a turn whose answer was lost on the way shows the answer, and runs nothing twice", async () => {
    server.turns = [() => Promise.reject(new TypeError("Failed to fetch")) as never];
    const { result } = open();
    await act(() => result.current.chat.sendMessage({ text: "Hi" }));
    const asked = result.current.chat.messages[0]!;
    server.record = [asked, said("a1", "assistant", "Hello")];
    await act(() => result.current.retry());
    await waitFor(() => expect(result.current.chat.messages).toEqual(server.record));
    expect(server.bodies).toHaveLength(1);
  });
});
