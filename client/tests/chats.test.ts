/** What the chats of all releases see of a connection that does not hold: nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CHATS, lastText, story, untilReady } from "./support/chats.ts";
import { answer, TestServer } from "./support/server.ts";
import { makeTransport } from "./support/transports.ts";
import { until } from "./support/until.ts";

const TOLD = answer("m1", "one ", "two ", "three");

for (const kind of CHATS) {
  test(`${kind.name}: drops inside a response are never seen`, async (t) => {
    const server = await TestServer.start(t);
    const transport = makeTransport(t, server.url, { sdkVersion: kind.sdkVersion });
    const chat = kind.open(t, { transport });
    await untilReady(chat);
    void chat.value.sendMessage({ text: "hello" });

    const first = await server.peer(0);
    first.tell(await first.next("send"), TOLD.slice(0, 4));
    await until(() => lastText(chat) === "one ", "the beginning is shown");
    first.drop();
    const second = await server.peer(1);
    const resume = await second.next("resume");
    assert.equal(chat.status, "streaming");
    second.tell(resume, TOLD.slice(4, 5), 4);
    await until(() => lastText(chat) === "one two ", "more is shown");
    second.drop();
    const third = await server.peer(2);
    third.finish(await third.next("resume"), TOLD.slice(5), 5);

    await untilReady(chat);
    assert.deepEqual(story(chat).slice(1), ["m1 assistant: one two three"]);
    assert.equal(chat.messages.length, 2);
    assert.deepEqual(chat.errors, []);
    assert.equal(server.peers.length, 3);
  });

  test(`${kind.name}: a drop between the words and the first chunk is never seen`, async (t) => {
    const server = await TestServer.start(t);
    const chat = kind.open(t, { transport: makeTransport(t, server.url) });
    await untilReady(chat);
    void chat.value.sendMessage({ text: "hello" });
    const first = await server.peer(0);
    await first.next("send");
    first.drop();
    const second = await server.peer(1);
    second.finish(await second.next("resume"), TOLD);
    await until(() => lastText(chat) === "one two three", "the answer is shown");
    await untilReady(chat);
    assert.deepEqual(chat.errors, []);
    assert.deepEqual(
      second.frames.map(({ type }) => type),
      ["resume"],
    );
  });

  test(`${kind.name}: a response that is lost for good is a disconnect`, async (t) => {
    const server = await TestServer.start(t);
    const chat = kind.open(t, { transport: makeTransport(t, server.url) });
    await untilReady(chat);
    void chat.value.sendMessage({ text: "hello" });
    const first = await server.peer(0);
    first.tell(await first.next("send"), TOLD.slice(0, 4));
    await until(() => lastText(chat) === "one ", "the beginning is shown");
    first.drop();
    const second = await server.peer(1);
    second.say({ type: "no-active", requestId: (await second.next("resume")).requestId });
    await until(() => chat.status === "error", "the chat shows an error");
    assert.equal(lastText(chat), "one ");
    assert.match(String(chat.errors[0]), /^TypeError: .*network/);
  });

  test(`${kind.name}: its stop button stops the run`, async (t) => {
    const server = await TestServer.start(t);
    const chat = kind.open(t, { transport: makeTransport(t, server.url) });
    await untilReady(chat);
    void chat.value.sendMessage({ text: "hello" });
    const peer = await server.peer(0);
    const request = await peer.next("send");
    peer.tell(request, TOLD.slice(0, 4));
    await until(() => lastText(chat) === "one ", "the beginning is shown");
    await chat.value.stop();
    assert.equal((await peer.next("abort")).requestId, request.requestId);
    await untilReady(chat);
    assert.equal(lastText(chat), "one ");
  });
}
