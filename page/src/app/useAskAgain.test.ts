import { act, waitFor } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { asking, open, said, server, turn, words } from "./testing.ts";

it("what the server refuses to take back is shown again", async () => {
  const refusal = { error: { code: "malformed", message: "Messages of a live session cannot be regenerated or edited." } };
  server.turns = [() => Response.json(refusal, { status: 400 })];
  const before = [asking, said("a1", "assistant", "Paid.")];
  const { result } = open(before);
  await act(async () => result.current.regenerate("a1"));
  await waitFor(() => expect(result.current.error?.message).toBe(refusal.error.message));
  await waitFor(() => expect(result.current.chat.messages).toEqual(before));
});

it("a message that is edited keeps its files", async () => {
  const file = { type: "file" as const, mediaType: "image/png", url: "data:image/png;base64,AA==" };
  server.turns = [turn(...words("a2", "Fine."))];
  const { result } = open([{ id: "u1", role: "user", parts: [file, { type: "text", text: "Look" }] }]);
  await act(async () => result.current.edit("u1", "Look again"));
  await waitFor(() => expect(server.bodies).toHaveLength(1));
  expect(server.bodies[0]!.messages).toMatchObject([{ id: "u1", parts: [file, { text: "Look again" }] }]);
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

  it("of an answer that a restart of the server has cut, which the page tells, asks for it again", async () => {
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
});
