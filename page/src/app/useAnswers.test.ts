import { act, waitFor } from "@testing-library/react";
import type { UIMessage } from "ai";
import { describe, expect, it } from "vitest";
import { asking, open, said, server, turn, waiting, words } from "./testing.ts";

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

describe("an output that the server does not take can be given again", () => {
  const form = { type: "tool-ask", toolCallId: "c1", state: "input-available", input: {} };
  const asks: UIMessage = { id: "a1", role: "assistant", parts: [form] as UIMessage["parts"] };
  const refuse = () => Response.json({ error: { code: "output-does-not-fit", message: "No." } }, { status: 422 });
  const giveOutput = { toolName: "ask", toolCallId: "c1", output: 3 };

  it.each([
    ["the last message", []],
    ["an older one", [said("u2", "user", "Hi"), said("a2", "assistant", "Hello")]],
  ])("in %s", async (_, later) => {
    server.turns = [refuse];
    const { result } = open([asking, asks, ...later]);
    await act(() => result.current.giveOutput(giveOutput));
    await waitFor(() => expect(server.bodies).toHaveLength(1));
    await waitFor(() => expect(result.current.chat.messages[1]!.parts[0]).toMatchObject({ state: "input-available" }));
    server.turns = [turn(...words("a1", "Thanks."))];
    await act(() => result.current.giveOutput({ toolName: "ask", toolCallId: "c1", errorText: "Declined." }));
    await waitFor(() => expect(server.bodies).toHaveLength(2));
    const part = { state: "output-error", errorText: "Declined." };
    expect(server.bodies[1]!.messages[0]!.parts[0]).toMatchObject(part);
  });
});
