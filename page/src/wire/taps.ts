/** Log what goes through `fetch` and `WebSocket` themselves, whatever the transport is. They delay nothing. */
import type { WebSocketConstructor } from "adk-stream-client";
import { EventReader } from "./events.ts";
import type { Exchange, NewEntry, WireLog } from "./log.ts";
import { isRecord } from "../is-record.ts";
import { continuedMessage, familyOf, StreamReader } from "./parts.ts";

/** For `DefaultChatTransport({ fetch })`, and for every other request of the chat API. */
export function tappedFetch(log: WireLog): typeof fetch {
  return async (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const url = new URL(request?.url ?? String(input), globalThis.document?.baseURI);
    const method = (init?.method ?? request?.method ?? "GET").toUpperCase();
    const raw = typeof init?.body === "string" ? init.body : "";
    const exchange = log.newExchange(method, decoded(url.pathname));
    const body = parsed(raw);
    const chatId = isRecord(body) && typeof body.id === "string" ? body.id : chatOf(exchange.path, method);
    const common = { mode: "chat", chatId, messageId: undefined, partKey: undefined, exchange } as const;
    const asking = { direction: "sent", family: "frame", kind: "request", askedAt: undefined } as const;
    log.add({ ...common, ...asking, type: method, data: body, raw });
    const answering = { ...common, direction: "received", askedAt: exchange.at } as const;
    try {
      // Browsers refuse a `fetch` that is called as a method of another object.
      const response = await globalThis.fetch(input, init);
      return tapped(log, response, answering, () => {
        const isAnew = method === "GET" || (isRecord(body) && body.trigger === "regenerate-message");
        return new StreamReader(log.parts, isAnew, continuedMessage(body));
      });
    } catch (error) {
      const data = error instanceof Error ? error.message : String(error);
      log.add({ ...answering, type: "no answer", family: "error", data, raw: data, kind: "failure" });
      throw error;
    }
  };
}

type Answering = Omit<NewEntry, "type" | "family" | "data" | "raw" | "kind">;

function tapped(log: WireLog, response: Response, answering: Answering, newReader: () => StreamReader): Response {
  const { status, statusText, headers } = response;
  const mediaType = headers.get("content-type")?.split(";")[0]?.trim();
  const isJson = mediaType === "application/json";
  const isStream = mediaType === "text/event-stream";
  const answer = (raw: string) => {
    const family = status < 400 ? "frame" : "error";
    log.add({ ...answering, type: String(status), family, data: parsed(raw), raw, kind: "response", status });
  };
  if (response.body === null || !isJson) answer("");
  if (response.body === null || !(isJson || isStream)) return response;

  const bytes = new TextDecoder();
  let text = "";
  const reader = newReader();
  const events = new EventReader({
    data: (raw) => log.add({ ...answering, ...chunkEntry(reader, raw) }),
    comment: () => log.addPing(),
  });
  const tap = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(piece, controller) {
      controller.enqueue(piece);
      const read = bytes.decode(piece, { stream: true });
      if (isStream) events.feed(read);
      else text += read;
    },
    flush() {
      if (isJson) answer(text);
    },
  });
  return new Response(response.body.pipeThrough(tap), { status, statusText, headers });
}

function chunkEntry(reader: StreamReader, raw: string) {
  const chunk = parsed(raw);
  const type = isRecord(chunk) ? String(chunk.type) : raw.slice(0, 40);
  const place = isRecord(chunk) ? reader.read(chunk) : {};
  return { type, family: familyOf(type), data: chunk ?? raw, raw, kind: "chunk", ...place } as const;
}

/** For `LiveChatTransport({ webSocket })`. */
export function tappedWebSocket(log: WireLog): WebSocketConstructor {
  // Requests outlive their sockets: one may go on over the next socket.
  const requests = new Map<string, LiveRequest>();
  return class extends globalThis.WebSocket {
    readonly #exchange: Exchange;
    #lastAsked: LiveRequest | undefined;

    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      const path = decoded(new URL(url, globalThis.document?.baseURI).pathname);
      this.#exchange = log.newExchange(undefined, path);
      this.#add("sent", { type: "open", family: "frame", data: { path }, raw: "", kind: "open" });
      this.addEventListener("message", ({ data }: MessageEvent<unknown>) => this.#heard("received", data));
      this.addEventListener("close", ({ code }) => {
        this.#add("received", { type: "close", family: "frame", data: { code }, raw: "", kind: "close", status: code });
      });
    }

    override send(data: string | ArrayBufferLike | Blob | ArrayBufferView<ArrayBufferLike>): void {
      this.#heard("sent", data);
      super.send(data as string);
    }

    #heard(direction: "sent" | "received", data: unknown): void {
      if (typeof data === "string") return this.#frame(direction, data);
      const bytes = data instanceof Blob ? data.size : (data as ArrayBuffer).byteLength;
      log.addVoice(this.#entry(direction, this.#lastAsked), bytes);
    }

    #frame(direction: "sent" | "received", text: string): void {
      const read = parsed(text);
      if (!isRecord(read)) {
        this.#add(direction, { type: "text", family: "error", data: text, raw: text, kind: "frame" });
        return;
      }
      const [frame, raw] = withoutVoice(read, text);
      const id = String(frame.requestId);
      const type = String(frame.type);
      if (direction === "sent" && (type === "send" || type === "resume")) this.#asked(id, frame);
      const request = requests.get(id);
      if (type === "chunk" && isRecord(frame.chunk) && request !== undefined) {
        const chunkType = String(frame.chunk.type);
        const place = request.reader.read(frame.chunk);
        const fields = { type: chunkType, family: familyOf(chunkType), data: frame.chunk, raw, kind: "frame" } as const;
        log.add({ ...this.#entry(direction, request), ...fields, ...place });
        return;
      }
      const family = familyOf(type);
      const entry = this.#entry(direction, request ?? this.#lastAsked);
      const chatId = typeof frame.id === "string" ? frame.id : entry.chatId;
      const messageId = typeof frame.messageId === "string" && direction === "received" ? frame.messageId : undefined;
      log.add({ ...entry, type, family, data: frame, raw, kind: "frame", chatId, messageId });
      if (direction === "received" && (type === "end" || type === "no-active" || type === "error")) requests.delete(id);
    }

    #asked(id: string, frame: Record<string, unknown>): void {
      const chatId = typeof frame.id === "string" ? frame.id : undefined;
      const known = requests.get(id);
      const goesOn = known !== undefined && typeof frame.lastSequence === "number";
      const isAnew = frame.type === "resume" || frame.trigger === "regenerate-message";
      const reader = goesOn ? known.reader : new StreamReader(log.parts, isAnew, continuedMessage(frame));
      this.#lastAsked = { chatId, at: performance.now(), reader };
      requests.set(id, this.#lastAsked);
    }

    #entry(direction: "sent" | "received", request: LiveRequest | undefined): Answering {
      const askedAt = direction === "sent" ? undefined : request?.at;
      const common = { mode: "live", direction, askedAt, exchange: this.#exchange } as const;
      return { ...common, chatId: request?.chatId, messageId: undefined, partKey: undefined };
    }

    #add(direction: "sent" | "received", entry: Omit<NewEntry, keyof Answering> & { status?: number }): void {
      log.add({ ...this.#entry(direction, this.#lastAsked), ...entry });
    }
  };
}

interface LiveRequest {
  chatId: string | undefined;
  at: number;
  reader: StreamReader;
}

/** Voice in base64 is as long as a book, and nobody reads it. */
function withoutVoice(frame: Record<string, unknown>, text: string): [Record<string, unknown>, string] {
  const chunk = isRecord(frame.chunk) && frame.chunk.type === "data-pcm" ? frame.chunk : undefined;
  if (typeof frame.data === "string" && frame.type === "audio") {
    const silent = { ...frame, data: "" };
    return [silent, JSON.stringify(silent)];
  }
  if (chunk === undefined) return [frame, text];
  const silent = { ...frame, chunk: { ...chunk, data: { ...(chunk.data as object), data: "" } } };
  return [silent, JSON.stringify(silent)];
}

function parsed(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function chatOf(path: string, method: string): string | undefined {
  const [, named] = /\/([^/]+)\/(?:stream|stop|messages|files\/.*)$/.exec(path) ?? [];
  return named ?? (method === "DELETE" ? path.split("/").at(-1) : undefined);
}
