import { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { afterEach, expect, it, vi } from "vitest";
import { browserTools } from "../tools/index.ts";
import { runBrowserCall, runWaitingCalls } from "./browser-calls.ts";

let chatNumber = 0;
const runs: unknown[] = [];

afterEach(() => {
  vi.unstubAllGlobals();
  delete browserTools["look"];
  runs.length = 0;
});

function chatWith(toolCallId: string, run: (input: unknown) => Promise<unknown>): Chat<UIMessage> {
  browserTools["look"] = {
    name: "look",
    describe: "",
    permission: async () => "allowed",
    run: (input) => {
      runs.push(input);
      return run(input);
    },
  };
  const part = { type: "tool-look", toolCallId, state: "input-available", input: { at: "sky" } };
  const messages = [{ id: "a1", role: "assistant", parts: [part] }] as UIMessage[];
  return new Chat({ id: `b${++chatNumber}`, messages, sendAutomaticallyWhen: () => false });
}

const partOf = (chat: Chat<UIMessage>) => chat.messages[0]!.parts[0]!;
const call = (toolCallId: string) => ({ toolName: "look", toolCallId, input: { at: "sky" } });

it("a call is run once, though the stream tells it and it waits in the message", async () => {
  const chat = chatWith("c1", async () => "blue");
  runBrowserCall(chat, call("c1"));
  runBrowserCall(chat, call("c1"));
  runWaitingCalls(chat);
  await vi.waitFor(() => expect(partOf(chat)).toMatchObject({ state: "output-available", output: "blue" }));
  expect(runs).toEqual([{ at: "sky" }]);
});

it("a call that waited when the page was loaded is run", async () => {
  const chat = chatWith("c2", async () => "grey");
  runWaitingCalls(chat);
  await vi.waitFor(() => expect(partOf(chat)).toMatchObject({ output: "grey" }));
});

it("a tool that fails answers with its error", async () => {
  const chat = chatWith("c3", async () => Promise.reject(new Error("It is dark.")));
  runBrowserCall(chat, call("c3"));
  await vi.waitFor(() => expect(partOf(chat)).toMatchObject({ state: "output-error", errorText: "It is dark." }));
});

it("calls of other tools are left alone, also those that are named like something that all objects have", async () => {
  const chat = chatWith("c4", async () => "blue");
  for (const toolName of ["pay", "constructor", "toString"]) runBrowserCall(chat, { ...call("c4"), toolName });
  await Promise.resolve();
  expect(partOf(chat)).toMatchObject({ state: "input-available" });
  expect(runs).toEqual([]);
});

it("of two tabs that are told of a call one runs it", async () => {
  const held = new Set<string>();
  const request = async (name: string, _: unknown, got: (lock: object | null) => unknown) => {
    const lock = held.has(name) ? null : {};
    held.add(name);
    await got(lock);
  };
  vi.stubGlobal("navigator", { locks: { request } });
  const chat = chatWith("c5", async () => "blue");
  // What another page would have taken.
  held.add(JSON.stringify(["adk-stream call", chat.id, "c5"]));
  runBrowserCall(chat, call("c5"));
  runBrowserCall(chat, call("c6"));
  await vi.waitFor(() => expect(runs).toHaveLength(1));
  expect(partOf(chat)).toMatchObject({ state: "input-available" });
});
