import { act, waitFor } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { answer, asking, open, said, server } from "./testing.ts";

describe("a chat that is opened", () => {
  it("goes on with the answer that its history leaves out", async () => {
    server.running = answer("a1", "A long story");
    const { result, id } = open([asking], "a1");
    await waitFor(() => expect(result.current.chat.messages.at(-1)).toMatchObject({ id: "a1" }));
    expect(server.asked).toEqual([`GET /${id}/stream?message=a1`]);
  });

  it("shows the whole answer that has ended since its history was read", async () => {
    server.ended = answer("a1", "A long story");
    const { result } = open([asking], "a1");
    await waitFor(() => expect(result.current.chat.messages).toHaveLength(2));
    await waitFor(() => expect(result.current.chat.status).toBe("ready"));
    const { messages } = result.current.chat;
    expect(messages.map(({ id }) => id)).toEqual(["u1", "a1"]);
    expect(messages[1]!.parts.at(-1)).toMatchObject({ text: "A long story" });
  });

  it("finds in the record what can be read no more", async () => {
    const { result, id } = open([asking], "a1");
    server.record = [asking, said("a1", "assistant", "A long story")];
    await waitFor(() => expect(result.current.chat.messages).toEqual(server.record));
    expect(server.asked).toEqual([`GET /${id}/stream?message=a1`, `GET /${id}/messages`]);
  });

  it("asks for no answer where none is being told", async () => {
    open([asking, said("a1", "assistant", "Paid.")]);
    await act(async () => {});
    expect(server.asked).toEqual([]);
  });
});
