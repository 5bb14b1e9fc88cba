/** Calls that waited for the browser when the page was loaded. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { lastAssistantMessageIsCompleteWithToolCalls, type UIMessage } from "ai";
import { type AnswerableChat, claimCall, runPendingCalls } from "../src/pending-calls.ts";
import { CHATS, lastText, untilReady } from "./support/chats.ts";
import { answer, TestServer } from "./support/server.ts";
import { makeTransport, userMessage } from "./support/transports.ts";
import { until } from "./support/until.ts";

function history(...parts: object[]): UIMessage[] {
  const shown = { id: "m1", role: "assistant", parts: [{ type: "step-start" }, ...parts] };
  return [userMessage("where am I?"), shown as unknown as UIMessage];
}

function call(toolCallId: string, more: object = {}): object {
  return { type: "tool-where", toolCallId, state: "input-available", input: { exact: true }, ...more };
}

/** A chat that only remembers what it is answered. */
function quietChat(id: string, messages: UIMessage[], status = "ready") {
  const outputs: unknown[] = [];
  const chat: AnswerableChat = { id, messages, status, addToolOutput: (output) => void outputs.push(output) };
  return { chat, outputs };
}

for (const kind of CHATS) {
  test(`${kind.name}: a pending call is run once after a reload, and its output is sent`, async (t) => {
    const server = await TestServer.start(t);
    const ran: unknown[] = [];
    const id = `reloaded ${kind.name}`;
    const run = (chat: AnswerableChat) => {
      void runPendingCalls(chat, (pending) => {
        ran.push(pending);
        return { city: "Bern" };
      });
    };
    const chat = kind.open(t, {
      id,
      transport: makeTransport(t, server.url),
      messages: history(call("k1")),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls as never,
      effect(mounted) {
        run(mounted);
        run(mounted);
        return undefined;
      },
    });
    const peer = await server.peer(0);
    const frame = await peer.next("send");
    const part = frame.messages.at(-1).parts.at(-1);
    assert.deepEqual([part.state, part.output], ["output-available", { city: "Bern" }]);
    run(chat.value);
    peer.finish(frame, answer("m1", "in Bern"));
    await until(() => lastText(chat) === "in Bern", "the answer is shown");
    await untilReady(chat);
    run(chat.value);
    assert.deepEqual(ran, [{ toolName: "where", toolCallId: "k1", input: { exact: true } }]);
    assert.equal(peer.frames.length, 1);
  });
}

test("only open calls of the browser in the last message are run", async () => {
  const { chat, outputs } = quietChat("choice", [
    ...history(call("older")),
    ...history(
      call("done", { state: "output-available", output: 1 }),
      call("asked", { state: "approval-requested", approval: { id: "a" } }),
      call("theirs", { providerExecuted: true }),
      { type: "dynamic-tool", toolName: "there", toolCallId: "open", state: "input-available", input: 1 },
      { type: "text", text: "hm" },
    ),
  ]);
  await runPendingCalls(chat, ({ toolName }) => toolName);
  assert.deepEqual(outputs, [{ tool: "there", toolCallId: "open", output: "there" }]);
});

test("a handler that fails answers with its error, and one that returns nothing answers not at all", async () => {
  const { chat, outputs } = quietChat("failing", history(call("k1"), call("k2")));
  await runPendingCalls(chat, async ({ toolCallId }) => {
    if (toolCallId === "k1") throw new Error("no permission");
  });
  assert.deepEqual(outputs, [{ tool: "where", toolCallId: "k1", state: "output-error", errorText: "no permission" }]);
});

test("nothing is run while a response is read, whose calls come through onToolCall", async () => {
  const { chat, outputs } = quietChat("busy", history(call("k1")), "streaming");
  await runPendingCalls(chat, () => 1);
  assert.deepEqual(outputs, []);
  await runPendingCalls({ ...chat, status: "ready" }, () => 2);
  assert.deepEqual(outputs, [{ tool: "where", toolCallId: "k1", output: 2 }]);
});

test("a call that onToolCall has claimed is not run, and the same id in another chat is another call", async () => {
  assert.equal(claimCall("claimed", "k1"), true);
  assert.equal(claimCall("claimed", "k1"), false);
  const { chat, outputs } = quietChat("claimed", history(call("k1")));
  await runPendingCalls(chat, () => 1);
  assert.deepEqual(outputs, []);
  assert.equal(claimCall("claimed elsewhere", "k1"), true);
});

test("before 5.0.89 the output goes the old way", async () => {
  const outputs: unknown[] = [];
  const chat = {
    id: "old",
    messages: history(call("k1")),
    status: "ready",
    addToolResult: (o: unknown) => void outputs.push(o),
  };
  await runPendingCalls(chat, () => 1);
  assert.deepEqual(outputs, [{ tool: "where", toolCallId: "k1", output: 1 }]);
});
