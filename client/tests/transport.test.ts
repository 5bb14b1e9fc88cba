/** The frames of requests, on a connection that holds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { UIMessageChunk } from "ai";
import { ChatRefusedError } from "../src/request.ts";
import { answer, TestServer } from "./support/server.ts";
import { makeTransport, readAll, roundTrip, userMessage, words } from "./support/transports.ts";
import { until } from "./support/until.ts";

test("words are sent in the documented frame and their answer is read to its end", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url, {
    params: () => ({ token: "a b" }),
    headers: async () => ({ "X-Tenant": "t" }),
    body: { color: "red", size: 1 },
    sdkVersion: 6,
  });
  const stream = await transport.sendMessages({ ...words("hello", { body: { size: 2 } }), metadata: { m: 1 } });
  const peer = await server.peer(0);
  const { requestId, ...frame } = await peer.next("send");
  assert.deepEqual(frame, {
    type: "send",
    id: "c1",
    trigger: "submit-message",
    messages: [userMessage("hello")],
    headers: { "x-tenant": "t" },
    body: { sdkVersion: 6, color: "red", size: 2 },
    metadata: { m: 1 },
  });
  assert.equal(peer.path, "/live?token=a+b");
  peer.finish({ requestId }, answer("m1", "hi", " there"));
  assert.deepEqual(await readAll(stream), answer("m1", "hi", " there"));
});

test("a prepared request replaces messages, headers and body, but keeps the version", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url, {
    sdkVersion: 7,
    body: { dropped: true },
    prepareSendMessagesRequest: ({ id, messages, body }) => ({
      messages: messages.slice(-1),
      headers: { Authorization: id },
      body: { kept: body },
    }),
  });
  await transport.sendMessages(words("b", { messages: [userMessage("a", "u0"), userMessage("b")] }));
  const frame = await (await server.peer(0)).next("send");
  assert.deepEqual(frame.messages, [userMessage("b")]);
  assert.deepEqual(frame.headers, { authorization: "c1" });
  assert.deepEqual(frame.body, { sdkVersion: 7, kept: { dropped: true } });
});

test("several chats share one socket and do not mix", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const first = await transport.sendMessages(words("one"));
  const second = await transport.sendMessages({ ...words("two"), chatId: "c2" });
  const peer = await server.peer(0);
  const [one, two] = [await peer.next("send"), await peer.next("send")];
  assert.ok(transport.isActive("c1") && transport.isActive("c2"));
  peer.tell(two, answer("m2", "B").slice(0, 4));
  peer.finish(one, answer("m1", "A"));
  peer.finish(two, answer("m2", "B").slice(4), 4);
  assert.deepEqual(await readAll(first), answer("m1", "A"));
  assert.deepEqual(await readAll(second), answer("m2", "B"));
  assert.ok(!transport.isActive("c1") && !transport.isActive("c2"));
  assert.equal(server.peers.length, 1);
});

test("a resume is a stream when something is told, and null when nothing is", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const some = transport.reconnectToStream({ chatId: "c1" });
  const none = transport.reconnectToStream({ chatId: "c2" });
  const peer = await server.peer(0);
  const [first, second] = [await peer.next("resume"), await peer.next("resume")];
  assert.equal("lastSequence" in first, false);
  peer.say({ type: "start", requestId: first.requestId });
  peer.say({ type: "no-active", requestId: second.requestId });
  assert.equal(await none, null);
  peer.finish(first, answer("m1", "again"));
  assert.deepEqual(await readAll((await some)!), answer("m1", "again"));
});

test("a refusal is an error with the server's text and code", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stream = await transport.sendMessages(words("hello"));
  const peer = await server.peer(0);
  const { requestId } = await peer.next("send");
  peer.say({ type: "error", requestId, errorText: "still answering", code: "run-active" });
  await assert.rejects(readAll(stream), (error) => {
    assert.ok(error instanceof ChatRefusedError);
    assert.deepEqual([error.message, error.code], ["still answering", "run-active"]);
    return true;
  });
});

test("stopping ends the stream and tells the server once", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stop = new AbortController();
  const stream = await transport.sendMessages(words("hello", { abortSignal: stop.signal }));
  const peer = await server.peer(0);
  const request = await peer.next("send");
  peer.tell(request, answer("m1", "hi").slice(0, 2));
  const reading = readAll(stream);
  await roundTrip(transport, peer);
  stop.abort();
  assert.equal((await reading).length, 2);
  assert.equal((await peer.next("abort")).requestId, request.requestId);
  peer.tell(request, answer("m1", "hi").slice(2), 2);
  await roundTrip(transport, peer);
  assert.equal(peer.frames.filter(({ type }) => type === "abort").length, 1);
  assert.equal(transport.isActive("c1"), false);
});

test("stopping a resume that is not answered yet rejects it as aborted", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stop = new AbortController();
  const resuming = transport.reconnectToStream({ chatId: "c1", abortSignal: stop.signal });
  await (await server.peer(0)).next("resume");
  stop.abort();
  await assert.rejects(resuming, { name: "AbortError" });
});

test("a reader that leaves after the last chunk stops nothing", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stream = await transport.sendMessages(words("hello"));
  const peer = await server.peer(0);
  const failed: UIMessageChunk[] = [{ type: "start" }, { type: "error", errorText: "the model failed" }];
  peer.tell(await peer.next("send"), failed);
  const reader = stream.getReader();
  await reader.read();
  await reader.read();
  await reader.cancel();
  await roundTrip(transport, peer);
  assert.deepEqual(
    peer.frames.filter(({ type }) => type === "abort"),
    [],
  );
});

test("chunks that ai@5 does not know are dropped for it alone", async (t) => {
  const server = await TestServer.start(t);
  const unknown = { type: "tool-approval-request", approvalId: "a", toolCallId: "k" } as UIMessageChunk;
  const data: UIMessageChunk = { type: "data-weather", data: 1 };
  const told = [{ type: "start" } as UIMessageChunk, unknown, data, { type: "finish" } as UIMessageChunk];
  for (const [place, sdkVersion] of [5, 6, undefined].entries()) {
    const transport = makeTransport(t, server.url, { sdkVersion: sdkVersion as 5 | 6 | undefined });
    const stream = await transport.sendMessages(words("hello"));
    const peer = await server.peer(place);
    const frame = await peer.next("send");
    assert.equal(frame.body.sdkVersion, sdkVersion);
    peer.finish(frame, told);
    const expected = sdkVersion === 5 ? told.filter((chunk) => chunk !== unknown) : told;
    assert.deepEqual(await readAll(stream), expected);
  }
});

test("a chunk that is told twice counts once, and one that is missing fails the request alone", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const broken = await transport.sendMessages(words("one"));
  const whole = await transport.sendMessages({ ...words("two"), chatId: "c2" });
  const peer = await server.peer(0);
  const [one, two] = [await peer.next("send"), await peer.next("send")];
  const chunks = answer("m2", "B");
  peer.tell(two, chunks.slice(0, 3));
  peer.tell(two, chunks.slice(1, 3), 1);
  peer.tell(one, chunks.slice(0, 1));
  peer.tell(one, chunks.slice(2, 3), 2);
  peer.finish(two, chunks.slice(3), 3);
  await assert.rejects(readAll(broken), /chunk of the response is missing/);
  assert.deepEqual(await readAll(whole), chunks);
});

test("frames that make no sense are passed over", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stream = await transport.sendMessages(words("hello"));
  const peer = await server.peer(0);
  const request = await peer.next("send");
  peer.say({ type: "chunk", requestId: "foreign", sequence: 0, chunk: { type: "start" } });
  peer.say([] as never);
  peer.say({ type: "news", requestId: request.requestId });
  peer.own("turn", { id: 7 });
  peer.finish(request, answer("m1", "hi"));
  assert.deepEqual(await readAll(stream), answer("m1", "hi"));
});

test("stop, interrupt and activity go to the attached chat, and listeners hear what the server tells", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const heard: unknown[] = [];
  transport.listen((event) => heard.push(event));
  transport.attach("c1");
  const peer = await server.peer(0);
  await peer.next("attach");
  transport.sendActivity("start");
  transport.sendActivity("end");
  transport.interrupt();
  transport.stop();
  await peer.next("stop");
  assert.deepEqual(
    peer.frames.map(({ type, requestId, id }) => [type, requestId, id]),
    [
      ["attach", "-", "c1"],
      ["activity-start", "-", undefined],
      ["activity-end", "-", undefined],
      ["interrupt", "-", undefined],
      ["stop", "-", undefined],
    ],
  );
  peer.own("transcript", { id: "c1", role: "assistant", messageId: "m", text: "hi", final: true });
  peer.own("error", { code: "malformed", message: "no" });
  await until(() => heard.length === 4, "all is heard");
  assert.deepEqual(heard, [
    { type: "connection", state: "open" },
    { type: "attached", id: "c1" },
    { type: "transcript", id: "c1", role: "assistant", messageId: "m", text: "hi", final: true },
    { type: "error", code: "malformed", message: "no" },
  ]);
});

test("closing fails what is being answered, and a later request opens another socket", async (t) => {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  const stream = await transport.sendMessages(words("hello"));
  const peer = await server.peer(0);
  await peer.next("send");
  transport.close();
  await assert.rejects(readAll(stream), /closed/);
  await until(() => peer.isClosed, "the socket is closed");
  const later = await transport.sendMessages(words("again"));
  const other = await server.peer(1);
  other.finish(await other.next("send"), answer("m1", "hi"));
  assert.deepEqual(await readAll(later), answer("m1", "hi"));
});
