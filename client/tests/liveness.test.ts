/** Pings, back-off and giving up, under a clock of the test's own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { backoffDelay } from "../src/link.ts";
import { DEFAULT_TIMING } from "../src/options.ts";
import { fakeTransport, promises } from "./support/fake-socket.ts";
import { answer } from "./support/server.ts";
import { decision, readAll, words } from "./support/transports.ts";

const PING = { type: "ping", requestId: "-" };
const PONG = { type: "pong", requestId: "-" };
const isLost = { name: "TypeError", message: /network/ };

test("a ping is sent every 20 seconds, and a socket that answers in time lives on", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  transport.attach("c1");
  await promises();
  const [socket] = sockets;
  socket!.open();
  t.mock.timers.tick(19_999);
  assert.deepEqual(socket!.frames.slice(1), []);
  t.mock.timers.tick(1);
  for (let round = 1; round <= 5; round++) {
    assert.deepEqual(socket!.frames.slice(1), Array(round).fill(PING));
    t.mock.timers.tick(19_999);
    socket!.say(PONG);
    t.mock.timers.tick(1);
  }
  assert.equal(socket!.readyState, 1);
  assert.equal(sockets.length, 1);
});

test("a socket that is silent for 20 seconds after a ping is dead, and its response goes on elsewhere", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  const reading = readAll(await transport.sendMessages(words("hello")));
  await promises();
  sockets[0]!.open();
  const [{ requestId }] = sockets[0]!.frames as [{ type: string; requestId: string }];
  const told = answer("m1", "hi");
  sockets[0]!.say({ type: "chunk", requestId, sequence: 0, chunk: told[0] });
  t.mock.timers.tick(20_000);
  t.mock.timers.tick(19_999);
  assert.equal(sockets[0]!.readyState, 1);
  t.mock.timers.tick(1);
  assert.equal(sockets[0]!.readyState, 3);
  t.mock.timers.tick(500);
  await promises();
  sockets[1]!.open();
  assert.deepEqual(sockets[1]!.frames[0], {
    type: "resume",
    requestId,
    id: "c1",
    lastSequence: 0,
    headers: {},
    body: {},
  });
  // What the dead one says after all is not heard.
  sockets[0]!.say({ type: "chunk", requestId, sequence: 1, chunk: told[1] });
  told.slice(1).forEach((chunk, place) => {
    sockets[1]!.say({ type: "chunk", requestId, sequence: place + 1, chunk });
  });
  sockets[1]!.say({ type: "end", requestId });
  assert.deepEqual(await reading, told);
});

test("a handshake that takes longer than 20 seconds is given up for another", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  transport.attach("c1");
  await promises();
  t.mock.timers.tick(20_000);
  assert.equal(sockets[0]!.readyState, 3);
  t.mock.timers.tick(500);
  await promises();
  assert.equal(sockets.length, 2);
});

test("the delay doubles up to its limit, and half of it is chance", (t) => {
  const backoff = { firstMs: 500, maxMs: 15_000 };
  const chance = t.mock.method(Math, "random", () => 0);
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 20].map((n) => backoffDelay(n, backoff)),
    [250, 500, 1000, 2000, 4000, 7500, 7500],
  );
  chance.mock.mockImplementation(() => 1);
  assert.deepEqual(
    [0, 1, 5].map((n) => backoffDelay(n, backoff)),
    [500, 1000, 15_000],
  );
});

test("attempts come after these delays, and start anew only when a server has spoken", async (t) => {
  t.mock.method(Math, "random", () => 1);
  const { transport, sockets } = fakeTransport(t);
  transport.attach("c1");
  await promises();
  const attempt = async (delay: number) => {
    const before = sockets.length;
    sockets.at(-1)!.drop();
    t.mock.timers.tick(delay - 1);
    await promises();
    assert.equal(sockets.length, before, `too early, before ${delay} ms`);
    t.mock.timers.tick(1);
    await promises();
    assert.equal(sockets.length, before + 1, `not after ${delay} ms`);
  };
  await attempt(500);
  await attempt(1000);
  // Whoever accepts sockets and drops them is no server.
  sockets.at(-1)!.open();
  await attempt(2000);
  sockets.at(-1)!.open();
  sockets.at(-1)!.say({ type: "attached", requestId: "-", id: "c1" });
  await attempt(500);
  for (const delay of [1000, 2000, 4000, 5000, 5000, 5000]) await attempt(delay);
});

test("a request fails when there was no server for a minute; an attached chat goes on trying", async (t) => {
  t.mock.method(Math, "random", () => 1);
  const { transport, sockets } = fakeTransport(t);
  transport.attach("c1");
  const failing = assert.rejects(readAll(await transport.sendMessages(words("hello"))), isLost);
  for (let second = 0; second < DEFAULT_TIMING.giveUpMs / 1000; second++) {
    assert.equal(transport.isActive("c1"), true);
    await promises();
    if (sockets.at(-1)!.readyState === 0) sockets.at(-1)!.drop();
    t.mock.timers.tick(1000);
  }
  await failing;
  assert.equal(transport.isActive("c1"), false);
  const attempts = sockets.length;
  t.mock.timers.tick(5_000);
  await promises();
  assert.equal(sockets.length, attempts + 1);
  sockets.at(-1)!.open();
  assert.deepEqual(
    sockets.at(-1)!.frames.map(({ type }) => type),
    ["attach"],
  );
});

test("a model that thinks for minutes is no lost connection", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  const reading = readAll(await transport.sendMessages(words("hello")));
  await promises();
  sockets[0]!.open();
  for (let ping = 0; ping < 15; ping++) {
    t.mock.timers.tick(20_000);
    sockets[0]!.say(PONG);
  }
  const { requestId } = sockets[0]!.frames[0]!;
  answer("m1", "done").forEach((chunk, sequence) => sockets[0]!.say({ type: "chunk", requestId, sequence, chunk }));
  sockets[0]!.say({ type: "end", requestId });
  assert.deepEqual(await reading, answer("m1", "done"));
});

test("a new request does not wait for the back-off", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  transport.attach("c1");
  await promises();
  sockets[0]!.drop();
  await transport.sendMessages(words("hello"));
  await promises();
  assert.equal(sockets.length, 2);
});

test("a device that is online again does not wait for the back-off", async (t) => {
  const window = new EventTarget();
  for (const name of ["addEventListener", "removeEventListener"] as const) {
    Object.defineProperty(globalThis, name, { value: window[name].bind(window), configurable: true });
    t.after(() => delete (globalThis as { [name]?: unknown })[name]);
  }
  const { transport, sockets } = fakeTransport(t);
  transport.attach("c1");
  await promises();
  sockets[0]!.drop();
  window.dispatchEvent(new Event("online"));
  await promises();
  assert.equal(sockets.length, 2);
  window.dispatchEvent(new Event("online"));
  await promises();
  assert.equal(sockets.length, 2);
});

test("a token that cannot be had for a while is asked for again", async (t) => {
  let isOffline = true;
  const { transport, sockets } = fakeTransport(t, {
    params: async () => {
      if (isOffline) throw new TypeError("fetch failed");
      return { token: "t" };
    },
  });
  transport.attach("c1");
  await promises();
  assert.equal(sockets.length, 0);
  isOffline = false;
  t.mock.timers.tick(500);
  await promises();
  assert.equal(sockets.length, 1);
});

test("words go to a socket that was silent only after it has shown that it lives", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  transport.attach("c1");
  await promises();
  sockets[0]!.open();
  t.mock.timers.tick(1_999);
  await transport.sendMessages(words("at once"));
  assert.deepEqual(
    sockets[0]!.frames.map(({ type }) => type),
    ["attach", "send"],
  );
  t.mock.timers.tick(1);
  await transport.sendMessages(words("later"));
  assert.deepEqual(sockets[0]!.frames.slice(2), [PING]);
  sockets[0]!.say(PONG);
  assert.deepEqual(
    sockets[0]!.frames.slice(3).map(({ type }) => type),
    ["send"],
  );
  sockets[0]!.say(PONG);
  assert.equal(sockets[0]!.frames.length, 4);
});

test("words for a socket that died unnoticed are sent over the next one, once", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  transport.attach("c1");
  await promises();
  sockets[0]!.open();
  t.mock.timers.tick(10_000);
  await transport.sendMessages(words("good morning"));
  t.mock.timers.tick(4_999);
  assert.equal(sockets[0]!.readyState, 1);
  t.mock.timers.tick(1);
  assert.equal(sockets[0]!.readyState, 3);
  t.mock.timers.tick(500);
  await promises();
  sockets[1]!.open();
  assert.deepEqual(
    sockets.map(({ frames }) => frames.map(({ type }) => type)),
    [
      ["attach", "ping"],
      ["send", "attach"],
    ],
  );
});

test("answers to calls, which may be said twice, do not wait for a sign of life", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  transport.attach("c1");
  await promises();
  sockets[0]!.open();
  t.mock.timers.tick(10_000);
  await transport.sendMessages(decision());
  assert.deepEqual(
    sockets[0]!.frames.map(({ type }) => type),
    ["attach", "send"],
  );
});

test("stopping over a socket that is closing is told on the next one", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  const stop = new AbortController();
  await transport.sendMessages(words("hello", { abortSignal: stop.signal }));
  await promises();
  sockets[0]!.open();
  sockets[0]!.readyState = 2;
  stop.abort();
  sockets[0]!.drop();
  t.mock.timers.tick(500);
  await promises();
  sockets[1]!.open();
  assert.deepEqual(
    sockets.map(({ frames }) => frames.map(({ type }) => type)),
    [["send"], ["resume", "abort"]],
  );
});

test("words do not go to a socket that is closing, and go to the next one once", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  transport.attach("c1");
  await promises();
  sockets[0]!.open();
  sockets[0]!.readyState = 2;
  await transport.sendMessages(words("hello"));
  sockets[0]!.drop();
  t.mock.timers.tick(500);
  await promises();
  sockets[1]!.open();
  assert.deepEqual(
    sockets.map(({ frames }) => frames.map(({ type }) => type)),
    [["attach"], ["send", "attach"]],
  );
});

test("voice that the network does not take is dropped, and voice without a socket is lost", async (t) => {
  const { transport, sockets } = fakeTransport(t);
  transport.sendAudio(new ArrayBuffer(640));
  transport.attach("c1");
  await promises();
  sockets[0]!.protocol = "adk-stream.v1";
  sockets[0]!.open();
  transport.sendAudio(new ArrayBuffer(640));
  sockets[0]!.bufferedAmount = 70_000;
  transport.sendAudio(new ArrayBuffer(640));
  sockets[0]!.bufferedAmount = 0;
  transport.sendAudio(new ArrayBuffer(320));
  const voice = sockets[0]!.sent.filter((frame) => typeof frame !== "string");
  assert.deepEqual(
    voice.map(({ byteLength }) => byteLength),
    [640, 320],
  );
});
