import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WireLog } from "./log.ts";
import { recordingOf } from "./recording.ts";
import { tappedFetch, tappedWebSocket } from "./taps.ts";

type Chunk = Record<string, unknown>;

const TURN = [
  { type: "start", messageId: "m2" },
  { type: "reasoning-start", id: "r1" },
  { type: "reasoning-delta", id: "r1", delta: "Hm" },
  { type: "text-start", id: "t1" },
  { type: "text-delta", id: "t1", delta: "Hello" },
  { type: "tool-input-available", toolCallId: "c1", toolName: "pay", input: {} },
  { type: "tool-approval-request", approvalId: "a1", toolCallId: "c1" },
  { type: "data-adk-approval", id: "a1", data: {} },
  { type: "text-end", id: "t1" },
  { type: "file", url: "data:,", mediaType: "text/plain" },
  { type: "source-url", sourceId: "s", url: "https://example.com" },
  { type: "finish" },
];

function events(chunks: Chunk[]): string {
  const told = chunks.map((chunk, place) => `id: s-${place}\ndata: ${JSON.stringify(chunk)}\n\n`);
  return `${told.join("")}: ping\n\ndata: [DONE]\n\n`;
}

function streamOf(text: string, pieceSize: number): Response {
  const bytes = new TextEncoder().encode(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / pieceSize) }, (_, number) =>
    bytes.slice(number * pieceSize, (number + 1) * pieceSize),
  );
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

function answering(...responses: (Response | Error)[]) {
  return vi.stubGlobal("fetch", async () => {
    const next = responses.shift();
    if (next instanceof Error || next === undefined) throw next;
    return next;
  });
}

const post = (body: object) => ({ method: "POST", body: JSON.stringify(body) });
const ask = { id: "chat-1", messages: [{ id: "m1", role: "user", parts: [] }] };
const received = (log: WireLog) => log.entries().filter(({ direction }) => direction === "received");
const keys = (log: WireLog) => log.entries().flatMap(({ partKey }) => partKey ?? []);

afterEach(() => vi.unstubAllGlobals());

describe("fetch", () => {
  for (const size of [1, 7, 10_000]) {
    it(`hands on every byte and tells each chunk, in pieces of ${size}`, async () => {
      const log = new WireLog();
      const text = events([...TURN, { type: "text-delta", id: "t2", delta: "日本語 🎌" }]);
      answering(streamOf(text, size));
      const response = await tappedFetch(log)("/api/chat", post(ask));
      expect(await response.text()).toBe(text);
      expect(response.headers.get("content-type")).toBe("text/event-stream");
      const [sent, head, ...chunks] = log.entries();
      expect(sent).toMatchObject({ type: "POST", direction: "sent", data: ask, chatId: "chat-1", mode: "chat" });
      expect(head).toMatchObject({ kind: "response", status: 200 });
      expect(chunks.slice(0, -1).map(({ data }) => data).slice(0, TURN.length)).toEqual(TURN);
      expect(chunks.at(-2)?.raw).toContain("日本語 🎌");
      expect(chunks.at(-1)).toMatchObject({ type: "[DONE]", data: "[DONE]", family: "frame" });
      expect(log.pings).toBe(1);
    });
  }

  it("gives a reader what has come before the stream ends", async () => {
    const log = new WireLog();
    let more!: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({ start: (controller) => void (more = controller) });
    answering(new Response(body, { headers: { "content-type": "text/event-stream" } }));
    const reader = (await tappedFetch(log)("/api/chat", post(ask))).body!.getReader();
    more.enqueue(new TextEncoder().encode('data: {"type":"start","messageId":"m2"}\n\n'));
    expect(new TextDecoder().decode((await reader.read()).value)).toContain("start");
    expect(log.entries().at(-1)).toMatchObject({ type: "start", messageId: "m2" });
    more.close();
  });

  it("names the part that each chunk builds", async () => {
    const log = new WireLog();
    answering(streamOf(events(TURN), 100));
    await (await tappedFetch(log)("/api/chat", post(ask))).text();
    expect(log.entries().map(({ type, partKey, family }) => [type, partKey, family]).slice(2, -2)).toEqual([
      ["start", undefined, "frame"],
      ["reasoning-start", "reasoning:0", "reasoning"],
      ["reasoning-delta", "reasoning:0", "reasoning"],
      ["text-start", "text:0", "text"],
      ["text-delta", "text:0", "text"],
      ["tool-input-available", "tool:c1", "tool"],
      ["tool-approval-request", "tool:c1", "approval"],
      ["data-adk-approval", "tool:c1", "approval"],
      ["text-end", "text:0", "text"],
      ["file", "file:0", "data"],
      ["source-url", "source:0", "data"],
    ]);
    expect(new Set(received(log).slice(1, -1).map(({ messageId }) => messageId))).toEqual(new Set(["m2"]));
    expect(log.part("m2", "tool:c1")).toMatchObject({ count: 3, families: ["tool", "approval", "approval"] });
  });

  const next = [
    { type: "start", messageId: "m2" },
    { type: "text-start", id: "t1" },
    { type: "text-end", id: "t1" },
  ];

  it("goes on counting the parts of a message in its next segment", async () => {
    const log = new WireLog();
    answering(streamOf(events(next), 100), streamOf(events(next), 100));
    const answer = { ...ask, messages: [{ id: "m2", role: "assistant", parts: [{ type: "text", text: "" }] }] };
    await (await tappedFetch(log)("/api/chat", post(ask))).text();
    await (await tappedFetch(log)("/api/chat", post(answer))).text();
    expect(keys(log)).toEqual(["text:0", "text:0", "text:1", "text:1"]);
  });

  it("knows the parts that the page has from the history", async () => {
    const log = new WireLog();
    answering(streamOf(events(next), 100));
    const parts = [{ type: "text" }, { type: "step-start" }, { type: "text" }, { type: "tool-pay", toolCallId: "c1" }];
    const answer = { ...ask, messages: [{ id: "m2", role: "assistant", parts }] };
    await (await tappedFetch(log)("/api/chat", post(answer))).text();
    expect(keys(log)).toEqual(["text:2", "text:2"]);
  });

  it("begins anew when a message is told again", async () => {
    const log = new WireLog();
    answering(streamOf(events(next), 100), streamOf(events(next), 100));
    await (await tappedFetch(log)("/api/chat", post(ask))).text();
    await (await tappedFetch(log)("/api/chat/chat-1/stream")).text();
    expect(keys(log)).toEqual(["text:0", "text:0", "text:0", "text:0"]);
    expect(log.part("m2", "text:0")).toMatchObject({ count: 2 });
    const again = log.entries().findLast(({ type }) => type === "text-start");
    expect(log.part("m2", "text:0")?.firstSeq).toBe(again?.seq);
    expect(again?.chatId).toBe("chat-1");
  });

  it("tells JSON answers, and leaves files and empty answers as they are", async () => {
    const log = new WireLog();
    const file = new Response("abc", { headers: { "content-type": "image/png" } });
    const refusal = Response.json({ error: { code: "malformed" } }, { status: 400 });
    answering(refusal, file, new Response(null, { status: 204 }));
    expect(await (await tappedFetch(log)("/api/chat", post(ask))).json()).toEqual({ error: { code: "malformed" } });
    expect(await tappedFetch(log)("/api/chat/c/files/a.png")).toBe(file);
    await tappedFetch(log)("/api/chat/c/stream");
    expect(received(log).map(({ type, family, data }) => [type, family, data])).toEqual([
      ["400", "error", { error: { code: "malformed" } }],
      ["200", "frame", undefined],
      ["204", "frame", undefined],
    ]);
  });

  it("tells a request that nobody answered, and lets it fail", async () => {
    const log = new WireLog();
    answering(new TypeError("Failed to fetch"));
    await expect(tappedFetch(log)("/api/chat", post(ask))).rejects.toThrow("Failed to fetch");
    expect(received(log)).toMatchObject([{ kind: "failure", family: "error", data: "Failed to fetch" }]);
    expect(recordingOf(log).trim().split("\n")).toHaveLength(1);
  });
});

class FakeSocket extends EventTarget {
  static last: FakeSocket;
  readonly sent: unknown[] = [];
  constructor() {
    super();
    FakeSocket.last = this;
  }
  send(data: unknown): void {
    this.sent.push(data);
  }
  tell(data: unknown): void {
    this.dispatchEvent(new MessageEvent("message", { data: typeof data === "object" ? JSON.stringify(data) : data }));
  }
}

describe("a socket", () => {
  beforeEach(() => void vi.stubGlobal("WebSocket", FakeSocket));

  const send = (requestId: string, more: object = {}) =>
    JSON.stringify({ type: "send", requestId, ...ask, trigger: "submit-message", ...more });
  const chunk = (requestId: string, sequence: number, told: Chunk) => ({ type: "chunk", requestId, sequence, chunk: told });

  it("tells its frames both ways, chunks as the chunks that they are", () => {
    const log = new WireLog();
    const socket = new (tappedWebSocket(log))("ws://localhost/api/chat/live");
    socket.send(send("r1"));
    TURN.forEach((told, sequence) => FakeSocket.last.tell(chunk("r1", sequence, told)));
    FakeSocket.last.tell({ type: "end", requestId: "r1" });
    FakeSocket.last.dispatchEvent(Object.assign(new Event("close"), { code: 1001 }));
    expect(FakeSocket.last.sent).toEqual([send("r1")]);
    const entries = log.entries();
    expect(entries.map(({ type }) => type)).toEqual(["open", "send", ...TURN.map(({ type }) => type), "end", "close"]);
    expect(entries.map(({ direction }) => direction).slice(0, 3)).toEqual(["sent", "sent", "received"]);
    expect(entries.find(({ type }) => type === "data-adk-approval")).toMatchObject({
      partKey: "tool:c1",
      messageId: "m2",
      chatId: "chat-1",
      mode: "live",
    });
    expect(entries.at(-1)).toMatchObject({ status: 1001 });
  });

  it("goes on with a request at another socket, and begins anew with a resume", () => {
    const log = new WireLog();
    const Socket = tappedWebSocket(log);
    const first = new Socket("ws://localhost/api/chat/live");
    first.send(send("r1"));
    FakeSocket.last.tell(chunk("r1", 0, { type: "start", messageId: "m2" }));
    FakeSocket.last.tell(chunk("r1", 1, { type: "text-start", id: "t" }));
    const second = new Socket("ws://localhost/api/chat/live");
    second.send(JSON.stringify({ type: "resume", requestId: "r1", id: "chat-1", lastSequence: 1 }));
    FakeSocket.last.tell(chunk("r1", 2, { type: "text-delta", id: "t", delta: "a" }));
    FakeSocket.last.tell({ type: "end", requestId: "r1" });
    expect(log.part("m2", "text:0")?.count).toBe(2);
    second.send(JSON.stringify({ type: "resume", requestId: "r2", id: "chat-1" }));
    FakeSocket.last.tell(chunk("r2", 0, { type: "start", messageId: "m2" }));
    FakeSocket.last.tell(chunk("r2", 1, { type: "text-start", id: "t" }));
    expect(log.part("m2", "text:0")?.count).toBe(1);
  });

  it("keeps no voice, in whatever form it comes", () => {
    const log = new WireLog();
    const socket = new (tappedWebSocket(log))("ws://localhost/api/chat/live");
    socket.send(new ArrayBuffer(640));
    FakeSocket.last.dispatchEvent(new MessageEvent("message", { data: new ArrayBuffer(960) }));
    FakeSocket.last.tell({ type: "audio", requestId: "-", id: "chat-1", rate: 24_000, data: "QUJD" });
    socket.send(send("r1"));
    FakeSocket.last.tell(chunk("r1", 0, { type: "data-pcm", data: { rate: 24_000, data: "QUJD" }, transient: true }));
    const audio = log.entries().filter(({ family }) => family === "audio");
    expect(audio.map(({ type }) => type)).toEqual(["voice", "voice", "audio", "data-pcm"]);
    expect(JSON.stringify(audio)).not.toContain("QUJD");
    expect(FakeSocket.last.sent[0]).toBeInstanceOf(ArrayBuffer);
  });

  it("tells text that is no frame", () => {
    const log = new WireLog();
    new (tappedWebSocket(log))("ws://localhost/api/chat/live");
    FakeSocket.last.tell("oops");
    expect(log.entries().at(-1)).toMatchObject({ family: "error", data: "oops" });
  });
});

describe("the recording", () => {
  const lines = (log: WireLog) =>
    recordingOf(log)
      .trimEnd()
      .split("\n")
      .map((line) => {
        const { at, ...rest } = JSON.parse(line) as { at: number };
        expect(at).toBeGreaterThanOrEqual(0);
        return rest;
      });

  it("has the lines that `adk-stream record` writes of a turn", async () => {
    const log = new WireLog();
    const turn = [{ type: "start", messageId: "m2" }, { type: "finish" }];
    const refusal = Response.json({ error: {} }, { status: 400 });
    answering(streamOf(events(turn), 100), new Response(null, { status: 204 }), refusal);
    await (await tappedFetch(log)("/api/chat", post(ask))).text();
    await tappedFetch(log)("/api/chat/%E6%9D%B1/stream?user=x");
    await (await tappedFetch(log)("/api/chat", { method: "POST", body: "{oops" })).text();
    expect(lines(log)).toEqual([
      { exchange: 1, direction: "request", method: "POST", path: "/api/chat", body: ask },
      { exchange: 1, direction: "response", status: 200 },
      { exchange: 1, direction: "chunk", chunk: turn[0] },
      { exchange: 1, direction: "chunk", chunk: turn[1] },
      { exchange: 1, direction: "chunk", chunk: "[DONE]" },
      { exchange: 2, direction: "request", method: "GET", path: "/api/chat/東/stream" },
      { exchange: 2, direction: "response", status: 204 },
      { exchange: 3, direction: "request", method: "POST", path: "/api/chat", text: "{oops" },
      { exchange: 3, direction: "response", status: 400, body: { error: {} } },
    ]);
  });

  it("keeps numbers as they are on the wire, and one object a line", async () => {
    const log = new WireLog();
    const headers = { "content-type": "application/json" };
    answering(new Response('{\n "large": 12345678901234567890\n}', { headers }));
    await (await tappedFetch(log)("/api/chat")).text();
    const written = recordingOf(log).trimEnd().split("\n");
    expect(written).toHaveLength(2);
    expect(written[1]).toContain('"large": 12345678901234567890');
    expect(JSON.parse(written[1]!)).toMatchObject({ status: 200 });
  });

  it("has a socket's frames in the order of their times, voice by its size", () => {
    vi.stubGlobal("WebSocket", FakeSocket);
    const log = new WireLog();
    const clock = vi.spyOn(performance, "now");
    const at = (ms: number) => clock.mockReturnValue(log.beganAt + ms);
    at(0);
    const socket = new (tappedWebSocket(log))("ws://localhost/api/chat/live?user=x");
    at(10);
    socket.send(new ArrayBuffer(640));
    at(20);
    FakeSocket.last.tell({ type: "pong", requestId: "-" });
    at(30);
    socket.send(new ArrayBuffer(320));
    at(40);
    FakeSocket.last.dispatchEvent(Object.assign(new Event("close"), { code: 1012 }));
    expect(log.entries().filter(({ type }) => type === "voice")).toHaveLength(1);
    expect(lines(log)).toEqual([
      { exchange: 1, direction: "open", path: "/api/chat/live" },
      { exchange: 1, direction: "frame", by: "client", bytes: 640 },
      { exchange: 1, direction: "frame", by: "server", frame: { type: "pong", requestId: "-" } },
      { exchange: 1, direction: "frame", by: "client", bytes: 320 },
      { exchange: 1, direction: "close", by: "server", code: 1012 },
    ]);
    expect(recordingOf(log)).toMatch(/^\{"at":0,.*\n\{"at":0.01,/);
  });

  it("begins every exchange, also one whose beginning is no longer in the log", async () => {
    const log = new WireLog(2);
    answering(streamOf(events([{ type: "start" }, { type: "finish" }]), 100));
    await (await tappedFetch(log)("/api/chat", post(ask))).text();
    expect(lines(log)).toEqual([
      { exchange: 1, direction: "request", method: "POST", path: "/api/chat" },
      { exchange: 1, direction: "chunk", chunk: { type: "finish" } },
      { exchange: 1, direction: "chunk", chunk: "[DONE]" },
    ]);
  });
});
