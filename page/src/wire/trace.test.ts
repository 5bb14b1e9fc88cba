import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import type { WireEntry } from "./log.ts";
import { traceOf } from "./trace.ts";

const call = (more: object) => ({ type: "tool-pay", toolCallId: "c", state: "output-available", input: {}, ...more });

function message(...parts: object[]): UIMessage {
  const metadata = { modelVersion: "m-1", usage: { inputTokens: 3, outputTokens: 4, note: "x" } };
  return { id: "a", role: "assistant", metadata, parts } as UIMessage;
}

function entry(at: number, type: string, partKey?: string, messageId = "a"): WireEntry {
  return { at, type, partKey, messageId, direction: "received", askedAt: 100 } as WireEntry;
}

const rows = (...parts: object[]) => traceOf(message(...parts), []).rows;

test("a turn has its parts by step, its tokens and its model", () => {
  const { usage, model, rows } = traceOf(
    message(
      { type: "step-start" },
      { type: "reasoning", text: "Well,\n then" },
      call({}),
      { type: "step-start" },
      { type: "text", text: "" },
      { type: "text", text: "x".repeat(100), providerMetadata: { adk: { author: "helper", toolCallId: "c" } } },
    ),
    [],
  );
  expect([usage, model]).toEqual([{ inputTokens: 3, outputTokens: 4 }, "m-1"]);
  expect(rows).toMatchObject([
    { step: 1, name: "reasoning", about: "Well, then", family: "reasoning", partKey: "reasoning:0", isInner: false },
    { step: 1, name: "pay", about: "completed", family: "tool", partKey: "tool:c", from: undefined },
    { step: 2, name: "text", about: `${"x".repeat(80)}…`, author: "helper", isInner: true, partKey: "text:1" },
  ]);
});

test("times are those of the chunks, since the turn was asked for", () => {
  const parts = [call({}), { type: "text", text: "Done" }];
  const entries = [
    entry(110, "start"),
    entry(120, "tool-input-start", "tool:c"),
    entry(125, "text-delta", "text:0", "another"),
    entry(150, "tool-output-available", "tool:c"),
    entry(160, "text-start", "text:0"),
    entry(190, "finish"),
  ];
  const trace = traceOf(message(...parts), entries);
  expect([trace.firstChunk, trace.total]).toEqual([10, 90]);
  expect(trace.rows.map(({ from, to }) => [from, to])).toEqual([
    [20, 50],
    [60, 60],
  ]);
  const without = traceOf(message(...parts), entries.slice(1));
  expect([without.total, without.rows[0]!.from]).toEqual([undefined, undefined]);
});

test.each([
  [call({ state: "approval-requested", approval: { id: "x" } }), "pay", "waits for a decision", "approval"],
  [call({ state: "output-error", errorText: "No money" }), "pay", "failed: No money", "error"],
  [call({ preliminary: true }), "pay", "preliminary result", "tool"],
  [call({ state: "unheard-of" }), "pay", "unheard-of", "tool"],
  [{ type: "data-adk-agent", data: { agent: "cook" } }, "transfer", "to cook", "data"],
  [{ type: "data-adk-state", data: { a: 1, b: 2 } }, "state", "a, b", "data"],
  [{ type: "data-adk-artifact", data: { filename: "x", version: 2 } }, "artifact", "x, version 2", "data"],
  [{ type: "data-adk-node", data: { path: "a/b" } }, "node", "a/b", "data"],
  [{ type: "data-adk-auth-request", data: {} }, "consent", "asked for", "approval"],
  [{ type: "data-adk-output", data: { a: 1 } }, "output", '{"a":1}', "data"],
  [{ type: "file", mediaType: "image/png", url: "data:," }, "file", "image/png", "data"],
])("%j is a line", (part, name, about, family) => {
  expect(rows(part)).toMatchObject([{ name, about, family, step: 0 }]);
});

test("what is for programs is none", () => {
  expect(rows({ type: "data-adk-approval", data: {} }, { type: "source-url", url: "x" })).toEqual([]);
});
