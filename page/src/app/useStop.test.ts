import { act, waitFor } from "@testing-library/react";
import type { UIMessage } from "ai";
import { describe, expect, it, vi } from "vitest";
import { asking, type Chunk, open, server, stream } from "./testing.ts";

describe("an answer", () => {
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

  it("is stopped here though the server cannot be reached", async () => {
    server.turns = [() => stream(new ReadableStream())];
    const { result } = open();
    act(() => void result.current.chat.sendMessage({ text: "Pay" }));
    await waitFor(() => expect(result.current.isBusy).toBe(true));
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
    await act(() => result.current.stop());
    expect(result.current.isBusy).toBe(false);
  });
});
