import { act, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";
import { open, said, server, turn, words } from "./testing.ts";

it("a turn sends only the message that says something new, and is told to the page", async () => {
  server.turns = [turn(...words("a2", "Fine."))];
  const { result, onTurn } = open([said("u1", "user", "Hi"), said("a1", "assistant", "Hello")]);
  await act(() => result.current.chat.sendMessage({ text: "How are you?" }));
  expect(server.bodies[0]!.messages).toMatchObject([{ role: "user", parts: [{ text: "How are you?" }] }]);
  await waitFor(() => expect(result.current.chat.messages.at(-1)).toMatchObject({ id: "a2" }));
  expect(onTurn).toHaveBeenCalled();
});
