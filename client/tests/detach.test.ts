/** Which chats a client reads and speaks for, and that it tells the server when that ends. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { LiveChatTransportOptions } from "../src/options.ts";
import { type FakeSocket, fakeTransport, promises } from "./support/fake-socket.ts";
import { readAll, words } from "./support/transports.ts";

const VOICE = ["attach", "detach", "voice-start", "voice-end"];

/** The frames beside requests, with their chats. */
function told(socket: FakeSocket): string[] {
  return socket.frames.filter(({ type }) => VOICE.includes(type)).map(({ type, id }) => `${type} ${id ?? ""}`.trim());
}

async function connected(t: TestContext, options: Partial<LiveChatTransportOptions> = {}) {
  const { transport, sockets } = fakeTransport(t, options);
  const endA = transport.attach("A");
  await promises();
  sockets[0]!.open();
  sockets[0]!.say({ type: "pong", requestId: "-" });
  return { transport, sockets, socket: sockets[0]!, endA };
}

async function reconnect(t: TestContext, sockets: FakeSocket[]): Promise<FakeSocket> {
  sockets.at(-1)!.drop();
  t.mock.timers.tick(5000);
  await promises();
  sockets.at(-1)!.open();
  return sockets.at(-1)!;
}

test("a chat that is given up is detached, and voice goes to the one before", async (t) => {
  const { transport, socket, endA } = await connected(t);
  const endB = transport.attach("B");
  endB();
  endB();
  assert.deepEqual(told(socket), ["attach A", "attach B", "detach B", "attach A"]);
  endA();
  assert.deepEqual(told(socket).slice(4), ["detach A"]);
});

test("a chat that is attached twice is detached when both are given up, or at once", async (t) => {
  const { transport, socket, endA } = await connected(t);
  const endAgain = transport.attach("A");
  endAgain();
  assert.deepEqual(told(socket), ["attach A", "attach A"]);
  endA();
  assert.deepEqual(told(socket).slice(2), ["detach A"]);
  transport.attach("A");
  const endLast = transport.attach("A");
  transport.detach("A");
  endLast();
  assert.deepEqual(told(socket).slice(3), ["attach A", "attach A", "detach A"]);
});

test("what is being answered is answered before its chat is detached", async (t) => {
  const { transport, socket } = await connected(t);
  const stream = await transport.sendMessages({ ...words("hi"), chatId: "A" });
  transport.detach("A");
  assert.deepEqual(told(socket), ["attach A"]);
  const { requestId } = socket.frames.find(({ type }) => type === "send")!;
  socket.say({ type: "chunk", requestId, sequence: 0, chunk: { type: "start", messageId: "m1" } });
  socket.say({ type: "end", requestId });
  assert.equal((await readAll(stream)).length, 1);
  assert.deepEqual(told(socket), ["attach A", "detach A"]);
});

test("a chat that is attached again while it is being answered stays", async (t) => {
  const { transport, socket } = await connected(t);
  await transport.sendMessages({ ...words("hi"), chatId: "A" });
  transport.detach("A");
  transport.attach("A");
  socket.say({ type: "end", requestId: socket.frames.find(({ type }) => type === "send")!.requestId });
  assert.deepEqual(told(socket), ["attach A", "attach A"]);
});

test("the next socket attaches in the order of the last attachments, and not to what was left", async (t) => {
  const { transport, sockets } = await connected(t);
  transport.attach("B");
  transport.attach("C");
  transport.attach("A");
  transport.detach("C");
  assert.deepEqual(told(await reconnect(t, sockets)), ["attach B", "attach A"]);
});

test("an open microphone is told with its client, and again on the next socket", async (t) => {
  const { transport, sockets, socket } = await connected(t, { sdkVersion: 7 });
  transport.startVoice({ name: "Phone", approvalStyle: "confirmation-tool" });
  const opened = socket.frames.find(({ type }) => type === "voice-start")!;
  const { client, ...rest } = opened;
  assert.match(String(client), /^[0-9a-f]{32}$/);
  assert.deepEqual(rest, {
    type: "voice-start",
    requestId: "-",
    name: "Phone",
    sdkVersion: 7,
    approvalStyle: "confirmation-tool",
  });
  const next = await reconnect(t, sockets);
  assert.deepEqual(told(next), ["attach A", "voice-start"]);
  assert.deepEqual(next.frames.at(-1), opened);
  transport.attach("B");
  transport.endVoice();
  transport.endVoice();
  assert.deepEqual(told(next).slice(2), ["attach B", "voice-start", "voice-end"]);
  assert.deepEqual(told(await reconnect(t, sockets)), ["attach A", "attach B"]);
});

test("who speaks is an event, but not that of a socket which the client has left", async (t) => {
  const { transport, sockets, socket } = await connected(t);
  const events: unknown[] = [];
  transport.listen((event) => void (event.type === "voice" && events.push(event)));
  socket.say({ type: "voice", requestId: "-", id: "A", owner: "other", name: "Phone" });
  socket.say({ type: "voice", requestId: "-", id: "A", owner: "you" });
  socket.say({ type: "voice", requestId: "-", id: "A", owner: null });
  socket.say({ type: "voice", requestId: "-" });
  socket.say({ type: "reconnect", requestId: "-" });
  t.mock.timers.tick(5000);
  await promises();
  sockets[1]!.open();
  socket.say({ type: "voice", requestId: "-", id: "A", owner: "other" });
  assert.deepEqual(events, [
    { type: "voice", id: "A", owner: "other", name: "Phone" },
    { type: "voice", id: "A", owner: "you", name: undefined },
    { type: "voice", id: "A", owner: null, name: undefined },
  ]);
});

test("a request that no socket takes is refused with what to do", async (t) => {
  const { transport, socket } = await connected(t);
  const file = { type: "file" as const, mediaType: "image/png", url: `data:,${"A".repeat(16 * 1024 * 1024)}` };
  const messages = [{ id: "u1", role: "user" as const, parts: [file] }];
  const stream = await transport.sendMessages({ ...words(""), messages });
  await assert.rejects(readAll(stream), { name: "ChatRefusedError", code: "too-large", message: /over HTTP/ });
  assert.deepEqual(told(socket), ["attach A"]);
  assert.equal(socket.frames.some(({ type }) => type === "send"), false);
});

test("a signal that outlives its requests keeps none of them", async (t) => {
  const { transport, socket } = await connected(t);
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...given: Parameters<typeof add>) => void (listeners++, add(...given));
  signal.removeEventListener = (...given: Parameters<typeof remove>) => void (listeners--, remove(...given));
  const stream = await transport.sendMessages(words("hi", { abortSignal: signal }));
  assert.equal(listeners, 1);
  socket.say({ type: "end", requestId: socket.frames.at(-1)!.requestId });
  await readAll(stream);
  assert.equal(listeners, 0);
});
