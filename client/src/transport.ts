/** The transport for `useChat`: requests in, streams out, and the frames of ours beside them. */
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import { encodeBase64 } from "./base64.ts";
import type { Connection, WebSocketConstructor } from "./connection.ts";
import { audioRate, BINARY_PROTOCOL, type LiveEvent, type LiveListener, OWN, parseFrame, readEvent } from "./frames.ts";
import { Link } from "./link.ts";
import { DEFAULT_TIMING, type LiveChatTransportOptions, resolve, socketUrl, type Timing } from "./options.ts";
import { prepareResume, prepareSend, type ResumeOptions, type SendOptions } from "./prepare.ts";
import { ChatRefusedError, LiveRequest, lostConnection, newRequestId, type RequestFrame } from "./request.ts";

export interface VoiceOptions {
  /** What the user's other pages call this one. */
  name?: string;
  /** How approvals are shown in answers to speech. */
  approvalStyle?: "approval-request" | "confirmation-tool";
}

/** Two seconds of voice. What waits longer is better not said at all. */
const MAX_WAITING_VOICE_BYTES = 64_000;
/** Common servers close a socket whose frame is larger, and no refusal would come. */
const MAX_FRAME_LENGTH = 16 * 1024 * 1024;

export class LiveChatTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  /** `resumeStream()` brings the whole message again. */
  readonly resumeStreamIsReplay = true;

  readonly #options: LiveChatTransportOptions<M>;
  readonly #timing: Timing;
  readonly #link: Link;
  readonly #requests = new Set<LiveRequest>();
  /** Attached chats in the order of their `attach` frames. One that was attached twice is here twice. */
  readonly #attached: string[] = [];
  readonly #listeners = new Set<LiveListener>();
  /** Chats to detach from as soon as their requests have been answered. */
  readonly #leaving = new Set<string>();
  /** By this the server knows this client on its next socket, too. */
  readonly #clientId = newRequestId();
  /** The frame that opens the microphone, as long as it is open. */
  #voice: object | undefined;
  #isConnected = false;
  /** Until when a `stop` that found no socket is still worth sending. */
  #stopUntil = 0;

  constructor(options: LiveChatTransportOptions<M>) {
    this.#options = options;
    this.#timing = { ...DEFAULT_TIMING, ...options.timing };
    const link = {
      params: () => resolve(options.params ?? {}),
      makeSocket: (params: Record<string, string>) => {
        const WebSocket = options.webSocket ?? (globalThis.WebSocket as WebSocketConstructor | undefined);
        if (WebSocket === undefined) throw new Error("There is no WebSocket here: hand one over as `webSocket`.");
        return new WebSocket(socketUrl(options.url, params), options.protocols ?? [BINARY_PROTOCOL]);
      },
      liveness: this.#timing,
      backoff: this.#timing.backoff,
    };
    this.#link = new Link(link, {
      opened: (connection) => this.#opened(connection),
      text: (connection, text) => this.#received(connection, text),
      binary: ({ audio }, pcm) => this.#emit({ type: "audio", ...audio, pcm }),
      closed: (connection) => this.#closed(connection),
      refused: (error) => this.#failAll(error),
      isNeeded: () => this.#requests.size > 0 || this.#attached.length > 0 || this.#stopUntil > Date.now(),
    });
  }

  async sendMessages(options: SendOptions<M>): Promise<ReadableStream<UIMessageChunk>> {
    const frame = await prepareSend(this.#options, options);
    const { messages, trigger, messageId, abortSignal } = options;
    const continued = messages.find((message) => message.id === messageId) ?? messages.at(-1);
    const isAnswer = trigger === "submit-message" && continued?.role === "assistant";
    return this.#start(frame, isAnswer, abortSignal, messages).stream;
  }

  async reconnectToStream(options: ResumeOptions<M>): Promise<ReadableStream<UIMessageChunk> | null> {
    const frame = await prepareResume(this.#options, options);
    return this.#start(frame, true, options.abortSignal, []).answer;
  }

  /** Whether a request of this chat's is being answered. */
  isActive(chatId: string): boolean {
    return [...this.#requests].some((request) => request.chatId === chatId && !request.isAborted);
  }

  /** The listener hears everything that is not the answer to a request. Returns how to end it. */
  listen(listener: LiveListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * From here on, and on every socket to come, this client speaks for the chat and hears of its turns. A socket speaks
   * for the chat that was attached last. Returns how to end it.
   */
  attach(chatId: string): () => void {
    this.#attached.push(chatId);
    this.#leaving.delete(chatId);
    if (this.#link.connection === undefined) this.#link.open();
    else this.#sendAttach(this.#link.connection, [chatId]);
    let isAttached = true;
    return () => {
      if (isAttached && this.#attached.includes(chatId)) this.#unattach(chatId, 1);
      isAttached = false;
    };
  }

  /**
   * This client no longer reads the chat: its live session ends after a while, unless others read it. What is still
   * being answered is answered first. Voice goes to the chat that was attached before.
   */
  detach(chatId: string): void {
    this.#unattach(chatId, Infinity);
  }

  /** Opens the microphone: of all clients of a chat one can speak. A `voice` event tells who does. */
  startVoice({ name, approvalStyle }: VoiceOptions = {}): void {
    const { sdkVersion } = this.#options;
    this.#voice = { type: "voice-start", requestId: OWN, client: this.#clientId, name, sdkVersion, approvalStyle };
    this.#link.voice?.send(this.#voice);
  }

  /** Closes it, so that others can speak. */
  endVoice(): void {
    if (this.#voice === undefined) return;
    this.#voice = undefined;
    this.#link.voice?.send({ type: "voice-end", requestId: OWN });
  }

  /** Takes 16-bit little-endian mono samples at 16 kHz. Without a socket that takes them they are lost. */
  sendAudio(pcm: ArrayBuffer): void {
    const connection = this.#link.voice;
    if (connection === undefined || connection.waitingBytes > MAX_WAITING_VOICE_BYTES) return;
    if (connection.protocol === BINARY_PROTOCOL) connection.send(pcm);
    else connection.send({ type: "audio", requestId: OWN, data: encodeBase64(pcm) });
  }

  /** The user begins or ends to speak. For models that do not find that out themselves. */
  sendActivity(activity: "start" | "end"): void {
    this.#link.voice?.send({ type: `activity-${activity}`, requestId: OWN });
  }

  /** Drops what the model still has to say in this turn. */
  interrupt(): void {
    this.#link.voice?.send({ type: "interrupt", requestId: OWN });
  }

  /** Ends the live session of the attached chat: model, tools, stream. */
  stop(): void {
    if (this.#link.connection !== undefined) return this.#link.connection.send({ type: "stop", requestId: OWN });
    this.#stopUntil = Date.now() + this.#timing.giveUpMs;
    this.#link.open();
  }

  /** Closes the connection and fails what is being answered. A later request opens a new one. */
  close(): void {
    this.#stopUntil = 0;
    this.#leaving.clear();
    this.#failAll(new Error("The chat transport was closed."));
    this.#link.close();
  }

  #start(frame: RequestFrame, isRepeatable: boolean, signal: AbortSignal | undefined, messages: M[]): LiveRequest {
    signal?.throwIfAborted();
    const request = new LiveRequest({
      frame,
      isRepeatable,
      messages,
      onlyChunksOf5: this.#options.sdkVersion === 5,
      cancelled: (cancelled) => this.#abort(cancelled),
    });
    this.#requests.add(request);
    const abort = () => this.#abort(request, signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    request.forgetSignal = () => signal?.removeEventListener("abort", abort);
    const { connection } = this.#link;
    if (connection !== undefined && (isRepeatable || connection.isFresh)) {
      this.#bind(request, connection);
    } else {
      this.#wait(request);
      if (connection === undefined) this.#link.open();
      else connection.ask();
    }
    return request;
  }

  #bind(request: LiveRequest, connection: Connection): void {
    const frame = JSON.stringify(request.nextFrame());
    if (frame.length > MAX_FRAME_LENGTH) {
      request.fail(new ChatRefusedError("This is too large for a WebSocket. Send it over HTTP.", "too-large"));
      return this.#forget(request);
    }
    request.connection = connection;
    connection.send(frame);
    if (request.isAborted) {
      connection.send({ type: "abort", requestId: request.requestId });
      this.#forget(request);
    } else if (!connection.isProven) {
      this.#wait(request);
    }
  }

  #wait(request: LiveRequest): void {
    request.waitAtMost(this.#timing.giveUpMs, () => {
      request.fail(lostConnection());
      this.#forget(request);
    });
  }

  #abort(request: LiveRequest, reason?: unknown): void {
    if (request.isOver) return;
    const isKnownToServer = request.isSent && !request.isComplete;
    request.abort(reason instanceof Error ? reason : new DOMException("The request was aborted.", "AbortError"));
    if (!isKnownToServer) return this.#forget(request);
    if (request.connection?.isOpen) {
      request.connection.send({ type: "abort", requestId: request.requestId });
      this.#forget(request);
    } else {
      request.isAborted = true;
      this.#wait(request);
    }
  }

  #forget(request: LiveRequest): void {
    request.stopWaiting();
    request.forgetSignal();
    this.#requests.delete(request);
    this.#leaveChats();
    this.#leaveOldSockets();
  }

  /** Gives up one attachment of the chat, or all of them. */
  #unattach(chatId: string, count: number): void {
    const last = this.#attached.at(-1);
    for (let left = count; left > 0 && this.#attached.includes(chatId); left--)
      this.#attached.splice(this.#attached.lastIndexOf(chatId), 1);
    if (!this.#attached.includes(chatId)) this.#leaving.add(chatId);
    this.#leaveChats();
    const { connection } = this.#link;
    const next = this.#attached.at(-1);
    if (next !== undefined && next !== last && connection !== undefined) this.#sendAttach(connection, [next]);
  }

  /** The last of these chats is the one that this client speaks for. */
  #sendAttach(connection: Connection, chatIds: string[]): void {
    for (const id of chatIds) connection.send({ type: "attach", requestId: OWN, id });
    if (chatIds.length > 0 && this.#voice !== undefined) connection.send(this.#voice);
  }

  #leaveChats(): void {
    for (const id of [...this.#leaving].filter((chatId) => !this.isActive(chatId))) {
      this.#leaving.delete(id);
      this.#link.connection?.send({ type: "detach", requestId: OWN, id });
    }
  }

  #leaveOldSockets(): void {
    this.#link.leave((connection) => ![...this.#requests].some((request) => request.connection === connection));
  }

  #failAll(error: Error): void {
    for (const request of this.#requests) {
      request.fail(error);
      this.#forget(request);
    }
  }

  /** The socket is alive: what waited for one can be said. */
  #bindWaiting(connection: Connection): void {
    for (const request of this.#requests) if (request.connection === undefined) this.#bind(request, connection);
  }

  #opened(connection: Connection): void {
    this.#bindWaiting(connection);
    // A chat that was attached twice counts where it was attached last: the server speaks for the last one.
    this.#sendAttach(connection, [...new Set(this.#attached.toReversed())].toReversed());
    if (this.#stopUntil > Date.now()) connection.send({ type: "stop", requestId: OWN });
    this.#stopUntil = 0;
    this.#leaveOldSockets();
    this.#setConnected(true);
  }

  #closed(connection: Connection): void {
    for (const request of this.#requests) {
      if (request.connection !== connection) continue;
      request.connection = undefined;
      if (request.isComplete) {
        request.end();
        this.#forget(request);
      } else if (this.#link.connection !== undefined) {
        this.#bind(request, this.#link.connection);
      } else {
        this.#wait(request);
      }
    }
    this.#setConnected(this.#link.connection !== undefined);
  }

  #received(connection: Connection, text: string): void {
    for (const request of this.#requests) if (request.connection === connection) request.stopWaiting();
    if (connection === this.#link.connection) this.#bindWaiting(connection);
    const frame = parseFrame(text);
    if (frame === undefined) return;
    if (frame.requestId !== OWN) {
      const request = [...this.#requests].find(({ requestId }) => requestId === frame.requestId);
      if (request === undefined) return;
      request.receive(frame);
      if (request.isOver) this.#forget(request);
    } else if (frame.type === "reconnect") {
      this.#link.move(connection);
    } else if (frame.type !== "voice" || connection === this.#link.connection) {
      // On an older socket, the voice that moved to the newer one would be another client's.
      if (frame.type === "audio" && frame.data === undefined) {
        connection.audio = { rate: audioRate(frame), id: typeof frame.id === "string" ? frame.id : undefined };
      }
      const event = readEvent(frame);
      if (event !== undefined) this.#emit(event);
    }
  }

  #setConnected(isConnected: boolean): void {
    if (this.#isConnected === isConnected) return;
    this.#isConnected = isConnected;
    this.#emit({ type: "connection", state: isConnected ? "open" : "lost" });
  }

  #emit(event: LiveEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        // A listener's error is reported as uncaught, and harms no response.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
