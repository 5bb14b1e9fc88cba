/** Lost connections: what is said on the next socket, and what the reader sees of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { UIMessage } from "ai";
import { answer, TestServer } from "./support/server.ts";
import { decision, FAST, makeTransport, readAll, roundTrip, userMessage, words } from "./support/transports.ts";
import { until } from "./support/until.ts";

const TOLD = answer("m2", "one ", "two ", "three");
const isLost = { name: "TypeError", message: /network/ };

test("a drop inside a response goes on after the last chunk, without a gap or a repeat", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url, { headers: { "x-tenant": "t" }, sdkVersion: 7 });
  const stream = await transport.sendMessages(words("hello"));
  const reading = readAll(stream);
  const first = await server.peer(0);
  const request = await first.next("send");
  first.tell(request, TOLD.slice(0, 4));
  await roundTrip(transport, first);
  first.drop();

  const second = await server.peer(1);
  const resume = await second.next("resume");
  assert.deepEqual(resume, {
    type: "resume",
    requestId: request.requestId,
    id: "c1",
    lastSequence: 3,
    headers: { "x-tenant": "t" },
    body: { sdkVersion: 7 },
  });
  second.say({ type: "start", requestId: resume.requestId });
  second.tell(resume, TOLD.slice(4, 5), 4);
  await roundTrip(transport, second);
  second.drop();

  const third = await server.peer(2);
  const again = await third.next("resume");
  assert.equal(again.lastSequence, 4);
  third.finish(again, TOLD.slice(5), 5);
  assert.deepEqual(await reading, TOLD);
});

test("words that were never handed to a socket are sent once there is one", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  let reading: Promise<unknown> | undefined;
  await server.restart(async () => {
    reading = readAll(await transport.sendMessages(words("hello")));
  });
  const peer = await server.peer(0);
  peer.finish(await peer.next("send"), TOLD);
  assert.deepEqual(await reading, TOLD);
});

test("words that the server may have got are asked for and not said again", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stream = await transport.sendMessages(words("hello"));
  const first = await server.peer(0);
  const request = await first.next("send");
  first.drop();
  const second = await server.peer(1);
  const resume = await second.next("resume");
  assert.equal(resume.requestId, request.requestId);
  assert.equal("lastSequence" in resume, false);
  second.finish(resume, TOLD);
  assert.deepEqual(await readAll(stream), TOLD);
  assert.deepEqual(second.frames, [resume]);
});

test("words of which the server knows nothing fail as a lost connection", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  for (const [round, refusal] of [{ type: "no-active" }, { type: "error", errorText: "who?" }].entries()) {
    const stream = await transport.sendMessages(words("hello"));
    const first = await server.peer(round);
    await first.next("send");
    first.drop();
    const second = await server.peer(round + 1);
    const { requestId } = await second.next("resume");
    second.say({ ...refusal, requestId });
    await assert.rejects(readAll(stream), isLost);
    assert.deepEqual(
      second.frames.map(({ type }) => type),
      ["resume"],
    );
  }
});

test("the continuation of an older message is not taken for the answer to words", async (t) => {
  const server = await TestServer.start(t);
  const prepareSendMessagesRequest = ({ messages }: { messages: UIMessage[] }) => ({ messages: messages.slice(-1) });
  const transport = makeTransport(t, server.url, { prepareSendMessagesRequest });
  const older = { id: "m1", role: "assistant" as const, parts: [] };
  const stream = await transport.sendMessages(words("hello", { messages: [older, userMessage("hello")] }));
  const first = await server.peer(0);
  await first.next("send");
  first.drop();
  const second = await server.peer(1);
  second.tell(await second.next("resume"), answer("m1", "what somebody else asked for"));
  await assert.rejects(readAll(stream), isLost);
});

test("an answer to a call, which the server takes once, is sent again as a new request", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stream = await transport.sendMessages(decision());
  const first = await server.peer(0);
  const { requestId, ...frame } = await first.next("send");
  first.drop();
  const second = await server.peer(1);
  const { requestId: otherId, ...again } = await second.next("send");
  assert.deepEqual(again, frame);
  assert.notEqual(otherId, requestId);
  second.finish({ requestId: otherId }, answer("m1", "paid"));
  assert.deepEqual(await readAll(stream), answer("m1", "paid"));
});

test("a regeneration is not sent again, though an assistant's message comes last", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stream = await transport.sendMessages({ ...decision(), trigger: "regenerate-message" });
  const first = await server.peer(0);
  await first.next("send");
  first.drop();
  const second = await server.peer(1);
  second.finish(await second.next("resume"), TOLD);
  assert.deepEqual(await readAll(stream), TOLD);
});

test("a resume that was not answered is asked again, and goes on when it was", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const resuming = transport.reconnectToStream({ chatId: "c1" });
  const first = await server.peer(0);
  await first.next("resume");
  first.drop();
  const second = await server.peer(1);
  const again = await second.next("resume");
  assert.equal("lastSequence" in again, false);
  second.tell(again, TOLD.slice(0, 2));
  const reading = readAll((await resuming)!);
  second.drop();
  const third = await server.peer(2);
  const { lastSequence, requestId } = await third.next("resume");
  assert.deepEqual([lastSequence, requestId], [1, again.requestId]);
  third.finish({ requestId }, TOLD.slice(2), 2);
  assert.deepEqual(await reading, TOLD);
});

test("a response that cannot be continued fails as a lost connection", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const reading = readAll(await transport.sendMessages(words("hello")));
  const first = await server.peer(0);
  first.tell(await first.next("send"), TOLD.slice(0, 2));
  await roundTrip(transport, first);
  first.drop();
  const second = await server.peer(1);
  second.say({ type: "no-active", requestId: (await second.next("resume")).requestId });
  await assert.rejects(reading, isLost);
});

test("a message that is told anew, under other numbers, is not taken for the rest of a response", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const reading = readAll(await transport.sendMessages(words("hello")));
  const first = await server.peer(0);
  first.tell(await first.next("send"), TOLD.slice(0, 3));
  await roundTrip(transport, first);
  first.drop();
  const second = await server.peer(1);
  second.finish(await second.next("resume"), TOLD);
  await assert.rejects(reading, isLost);
});

test("when only the end was lost nothing is asked for", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const reading = readAll(await transport.sendMessages(words("hello")));
  const first = await server.peer(0);
  first.tell(await first.next("send"), TOLD);
  await roundTrip(transport, first);
  first.drop();
  assert.deepEqual(await reading, TOLD);
  assert.equal(server.peers.length, 1);
});

test("stopping while there is no socket is told on the next one", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stop = new AbortController();
  const reading = readAll(await transport.sendMessages(words("hello", { abortSignal: stop.signal })));
  const first = await server.peer(0);
  const { requestId } = await first.next("send");
  first.tell({ requestId }, TOLD.slice(0, 2));
  await roundTrip(transport, first);
  await server.restart(async () => {
    await until(() => first.isClosed, "the socket is gone");
    stop.abort();
    assert.equal((await reading).length, 2);
    assert.equal(transport.isActive("c1"), false);
  });
  const second = await server.peer(1);
  assert.equal((await second.next("resume")).lastSequence, 1);
  assert.equal((await second.next("abort")).requestId, requestId);
  await until(() => second.frames.length === 2, "no more is said");
});

test("the live session's stop that found no socket is told after the chat is attached again", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  transport.attach("c1");
  const first = await server.peer(0);
  await first.next("attach");
  const lost = new Promise<void>((resolve) => {
    transport.listen((event) => event.type === "connection" && event.state === "lost" && resolve());
  });
  await server.restart(async () => {
    await lost;
    transport.stop();
  });
  const second = await server.peer(1);
  await second.next("stop");
  assert.deepEqual(
    second.frames.map(({ type }) => type),
    ["attach", "stop"],
  );
});

test("when the server is about to go, responses are read to their end and the rest moves on", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  transport.attach("c1");
  const reading = readAll(await transport.sendMessages(words("hello")));
  const first = await server.peer(0);
  const request = await first.next("send");
  first.tell(request, TOLD.slice(0, 3));
  first.own("reconnect");

  const second = await server.peer(1);
  await second.next("attach");
  const later = readAll(await transport.sendMessages({ ...words("more"), chatId: "c2" }));
  second.finish(await second.next("send"), answer("m9", "new"));
  assert.deepEqual(await later, answer("m9", "new"));
  assert.equal(first.isClosed, false);

  first.finish(request, TOLD.slice(3), 3);
  assert.deepEqual(await reading, TOLD);
  await until(() => first.isClosed, "the old socket is left");
  assert.equal(server.peers.length, 2);
});

test("when the server goes before a response has ended, it goes on over the new socket", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const reading = readAll(await transport.sendMessages(words("hello")));
  const first = await server.peer(0);
  first.tell(await first.next("send"), TOLD.slice(0, 3));
  await roundTrip(transport, first);
  first.own("reconnect");
  const second = await server.peer(1);
  first.drop();
  const resume = await second.next("resume");
  assert.equal(resume.lastSequence, 2);
  second.finish(resume, TOLD.slice(3), 3);
  assert.deepEqual(await reading, TOLD);
});

test("without a reason there is no socket: an idle transport does not come back by itself", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url, { timing: { ...FAST, backoff: { firstMs: 0, maxMs: 0 } } });
  const detach = transport.attach("c1");
  const first = await server.peer(0);
  await first.next("attach");
  detach();
  first.drop();
  const other = makeTransport(t, server.url);
  other.attach("c2");
  await (await server.peer(1)).next("attach");
  assert.equal(server.peers.length, 2);
});

test("a connection that the server refuses by its policy is not tried again", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stream = await transport.sendMessages(words("hello"));
  const peer = await server.peer(0);
  await peer.next("send");
  peer.close(1008);
  await assert.rejects(readAll(stream), /refused the connection/);
  assert.equal(transport.isActive("c1"), false);
});

test("an address that is none fails at once", async (t) => {
  const stream = await makeTransport(t, "ftp://host/live").sendMessages(words("hello"));
  await assert.rejects(readAll(stream), /Not the address of a WebSocket/);
});
