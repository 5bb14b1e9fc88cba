/** Turns that the server begins, and messages that were spoken, in the chats of all releases. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { UIMessage, UIMessageChunk } from "ai";
import { type BindableTransport, bindChat } from "../src/bind-chat.ts";
import type { LiveEvent } from "../src/frames.ts";
import { CHATS, type ChatKind, lastText, story, untilReady } from "./support/chats.ts";
import { answer, type Peer, TestServer } from "./support/server.ts";
import { makeTransport, roundTrip, userMessage } from "./support/transports.ts";
import { until } from "./support/until.ts";

/** A chat that is bound, with its first socket. */
async function bound(t: TestContext, kind: ChatKind, messages?: UIMessage[]) {
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url, { sdkVersion: kind.sdkVersion });
  let unbind = () => {};
  const effect = (chat: Parameters<typeof bindChat>[0]) => {
    unbind = bindChat(chat, transport);
    return unbind;
  };
  const chat = kind.open(t, { transport, messages, effect });
  const peer = await server.peer(0);
  assert.equal((await peer.next("attach")).id, "c1");
  await untilReady(chat);
  return { server, transport, chat, peer, unbind: () => unbind() };
}

function heard(peer: Peer, messageId: string, text: string, final = true): void {
  peer.own("transcript", { id: "c1", role: "user", messageId, text, final });
}

for (const kind of CHATS) {
  test(`${kind.name}: a turn that the server begins is read`, async (t) => {
    const { chat, peer } = await bound(t, kind, [userMessage("hello")]);
    peer.own("turn", { id: "c1", messageId: "m1" });
    peer.finish(await peer.next("resume"), answer("m1", "time ", "is up"));
    await until(() => lastText(chat) === "time is up", "the answer is shown");
    await untilReady(chat);
    assert.deepEqual(story(chat), ["u1 user: hello", "m1 assistant: time is up"]);
  });

  test(`${kind.name}: two turns that the server begins at once are both read`, async (t) => {
    const { chat, peer } = await bound(t, kind, [userMessage("hello")]);
    peer.own("turn", { id: "c1", messageId: "m1" });
    peer.own("turn", { id: "c1", messageId: "m2" });
    peer.finish(await peer.next("resume"), answer("m2", "too late"));
    peer.finish(await peer.next("resume"), answer("m1", "time is up"));
    await until(() => story(chat).length === 3, "both are shown");
    await untilReady(chat);
    assert.deepEqual(story(chat).sort(), ["m1 assistant: time is up", "m2 assistant: too late", "u1 user: hello"]);
  });

  test(`${kind.name}: speech becomes the user's message before its answer`, async (t) => {
    const { chat, peer } = await bound(t, kind);
    heard(peer, "u7", "what", false);
    await until(() => story(chat)[0] === "u7 user: what", "the beginning is shown");
    heard(peer, "u7", "what time", false);
    peer.own("transcript", { id: "other", role: "user", messageId: "u0", text: "not here", final: true });
    peer.own("turn", { id: "c1", messageId: "m7", userMessageId: "u7" });
    const resume = await peer.next("resume");
    peer.tell(resume, answer("m7", "four").slice(0, 4));
    await until(() => lastText(chat) === "four", "the answer is shown");
    heard(peer, "u7", "what time is it?");
    await until(() => story(chat)[0] === "u7 user: what time is it?", "the words are corrected");
    peer.finish(resume, answer("m7", "four").slice(4), 4);
    await untilReady(chat);
    assert.deepEqual(story(chat), ["u7 user: what time is it?", "m7 assistant: four"]);
  });

  test(`${kind.name}: words that are understood after their answer began are put before it`, async (t) => {
    const { chat, peer } = await bound(t, kind, [userMessage("hello")]);
    peer.own("turn", { id: "c1", messageId: "m7", userMessageId: "u7" });
    const resume = await peer.next("resume");
    peer.tell(resume, answer("m7", "four").slice(0, 4));
    await until(() => lastText(chat) === "four", "the answer is shown");
    heard(peer, "u7", "what time is it?");
    await until(() => chat.messages.length === 3, "the words are shown");
    peer.finish(resume, answer("m7", "four").slice(4), 4);
    await untilReady(chat);
    assert.deepEqual(story(chat), ["u1 user: hello", "u7 user: what time is it?", "m7 assistant: four"]);
  });

  test(`${kind.name}: a turn and words that come while it is busy wait until it is not`, async (t) => {
    const { chat, peer, transport } = await bound(t, kind);
    void chat.value.sendMessage({ text: "tell me a story" });
    const request = await peer.next("send");
    peer.tell(request, answer("m1", "once ", "upon").slice(0, 4));
    await until(() => lastText(chat) === "once ", "the story begins");
    heard(peer, "u2", "stop it");
    peer.own("turn", { id: "c1", messageId: "m2", userMessageId: "u2" });
    await roundTrip(transport, peer);
    peer.tell(request, answer("m1", "once ", "upon").slice(4, 5), 4);
    await until(() => lastText(chat) === "once upon", "the story goes on");
    assert.equal(
      peer.frames.some(({ type }) => type === "resume"),
      false,
    );
    assert.equal(chat.messages.length, 2);
    peer.finish(request, answer("m1", "once ", "upon").slice(5), 5);
    peer.finish(await peer.next("resume"), answer("m2", "all right"));
    await until(() => lastText(chat) === "all right", "the next answer is shown");
    await untilReady(chat);
    assert.deepEqual(
      story(chat).map((line) => line.replace(/^\S+ /, "")),
      ["user: tell me a story", "assistant: once upon", "user: stop it", "assistant: all right"],
    );
  });

  test(`${kind.name}: a message that goes on by itself is shown once`, async (t) => {
    const asked = [
      { type: "start", messageId: "m1" },
      { type: "start-step" },
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "one moment" },
      { type: "text-end", id: "t" },
      { type: "tool-input-start", toolCallId: "k", toolName: "where" },
      { type: "tool-input-delta", toolCallId: "k", inputTextDelta: "{}" },
    ] as UIMessageChunk[];
    const waiting = { type: "tool-input-available", toolCallId: "k", toolName: "where", input: {} } as UIMessageChunk;
    const pause = [{ type: "finish-step" }, { type: "finish", finishReason: "tool-calls" }] as UIMessageChunk[];
    const expired = { type: "tool-output-error", toolCallId: "k", errorText: "too late" } as UIMessageChunk;
    const { chat, peer } = await bound(t, kind);
    void chat.value.sendMessage({ text: "where am I?" });
    peer.finish(await peer.next("send"), [...asked, waiting, ...pause]);
    await until(
      () => chat.messages.at(-1)?.parts.some(({ type }) => type === "tool-where") ?? false,
      "the call is shown",
    );
    await untilReady(chat);
    peer.own("turn", { id: "c1", messageId: "m1" });
    const rest = answer("m1", "who knows")
      .slice(1)
      .map((chunk) => ("id" in chunk ? { ...chunk, id: "t2" } : chunk));
    peer.finish(await peer.next("resume"), [...asked, expired, ...rest] as UIMessageChunk[]);
    await until(() => lastText(chat).endsWith("who knows"), "the end is shown");
    await untilReady(chat);
    assert.deepEqual(story(chat).slice(1), ["m1 assistant: one moment | who knows"]);
    assert.equal(chat.messages.at(-1)!.parts.filter(({ type }) => type === "tool-where").length, 1);
  });

  test(`${kind.name}: after a lost connection it is attached again and asks for what it missed`, async (t) => {
    const { chat, peer, server, transport, unbind } = await bound(t, kind, [userMessage("hello")]);
    peer.drop();
    const second = await server.peer(1);
    assert.equal((await second.next("attach")).id, "c1");
    second.finish(await second.next("resume"), answer("m1", "meanwhile"));
    await until(() => lastText(chat) === "meanwhile", "the missed answer is shown");
    await untilReady(chat);
    second.own("turn", { id: "c1", messageId: "m2" });
    second.say({ type: "no-active", requestId: (await second.next("resume")).requestId });
    await untilReady(chat);
    unbind();
    heard(second, "u9", "nobody listens");
    await roundTrip(transport, second);
    assert.deepEqual(story(chat), ["u1 user: hello", "m1 assistant: meanwhile"]);
    let isLost = false;
    transport.listen((event) => void (isLost ||= event.type === "connection"));
    second.drop();
    await until(() => isLost, "the loss is noticed");
    void chat.value.sendMessage({ text: "bye" });
    const third = await server.peer(2);
    third.finish(await third.next("send"), answer("m3", "bye"));
    await until(() => lastText(chat) === "bye", "the answer is shown");
    await roundTrip(transport, third);
    assert.deepEqual(
      third.frames.map(({ type }) => type),
      ["send", "activity-end"],
    );
  });

  test(`${kind.name}: it can be bound in the midst of a response`, async (t) => {
    const server = await TestServer.start(t);
    const transport = makeTransport(t, server.url);
    const chat = kind.open(t, { transport });
    await untilReady(chat);
    void chat.value.sendMessage({ text: "hello" });
    const peer = await server.peer(0);
    const request = await peer.next("send");
    peer.tell(request, answer("m1", "one ", "two").slice(0, 4));
    await until(() => chat.status === "streaming" && lastText(chat) === "one ", "the beginning is shown");
    t.after(bindChat(chat.value, transport));
    await peer.next("attach");
    peer.own("turn", { id: "c1", messageId: "m2" });
    peer.finish(request, answer("m1", "one ", "two").slice(4), 4);
    peer.finish(await peer.next("resume"), answer("m2", "three"));
    await until(() => lastText(chat) === "three", "the turn is shown");
    await untilReady(chat);
    assert.deepEqual(story(chat).slice(1), ["m1 assistant: one two", "m2 assistant: three"]);
  });
}

test("a turn waits for what a chat sends by itself right after a response", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let isActive = false;
  let hear: (event: LiveEvent) => void = () => {};
  let reads = 0;
  const transport: BindableTransport = {
    attach: () => () => {},
    isActive: () => isActive,
    listen: (listener) => {
      hear = listener;
      return () => {};
    },
  };
  const chat = {
    id: "c1",
    messages: [],
    status: "ready",
    setMessages: () => {},
    resumeStream: async () => void (reads += 1),
  };
  t.after(bindChat(chat, transport));
  hear({ type: "turn", id: "c1", messageId: "m1" });
  isActive = true;
  for (let look = 0; look < 5; look++) t.mock.timers.tick(20);
  assert.equal(reads, 0);
  isActive = false;
  t.mock.timers.tick(20);
  t.mock.timers.tick(20);
  assert.equal(reads, 1);
});
