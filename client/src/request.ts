/**
 * One request of the chat's and the stream that answers it, over as many sockets as it takes.
 *
 * Words of the user's go only to a socket that has just shown that it lives, so that they are seldom lost on the way.
 * What is said on the next socket when one was lost:
 *
 * - The frame was never handed to a socket: it is sent.
 * - Chunks have come: `resume` with the number of the last one. Nothing is told twice, nothing is left out.
 * - No chunk has come, and the frame may be said twice: it is said again, as a new request. That holds for answers to
 *   calls, which the server takes once however often they come, and for a `resume`, which changes nothing.
 * - No chunk has come to words of the user's, or to a regeneration. Nobody can know whether the server got them, and
 *   saying them again might run a turn twice, so they are never said again: `resume` asks for what is being told in the
 *   chat. If that is nothing, or goes on with an older message, the request fails as a lost connection does. The
 *   person sees it, and decides.
 */
import type { UIMessageChunk } from "ai";
import type { Connection } from "./connection.ts";
import { isChunk, isKnownTo5, isLastChunk, type ResumeFrame, type SendFrame, type ServerFrame } from "./frames.ts";

/** The server refused a request; the codes are those of its HTTP interface. */
export class ChatRefusedError extends Error {
  override readonly name = "ChatRefusedError";
  readonly code: string | undefined;

  constructor(text: string | undefined, code: string | undefined) {
    super(text ?? "The chat server refused the request.");
    this.code = code;
  }
}

export type RequestFrame = Omit<SendFrame, "requestId"> | Omit<ResumeFrame, "requestId">;

export interface RequestOptions {
  frame: RequestFrame;
  /** The server takes this frame once, however often it comes. */
  isRepeatable: boolean;
  /** The messages that the chat has. */
  messages: readonly { id: string }[];
  onlyChunksOf5: boolean;
  /** The reader has cancelled the stream. */
  cancelled: (request: LiveRequest) => void;
}

export class LiveRequest {
  requestId = newRequestId();
  readonly stream: ReadableStream<UIMessageChunk>;
  /** The answer to a `resume`: null when there is nothing to read. A `send` tells everything through its stream. */
  readonly answer: Promise<ReadableStream<UIMessageChunk> | null>;
  /** The socket that it is bound to at present. */
  connection: Connection | undefined;
  /** The reader is gone, and the server has to be told so. */
  isAborted = false;
  isOver = false;
  isSent = false;
  /** Ends the wait for the reader's signal, which may outlive many requests. */
  forgetSignal: () => void = () => {};

  readonly #options: RequestOptions;
  #resolveAnswer!: (stream: ReadableStream<UIMessageChunk> | null) => void;
  #rejectAnswer!: (error: Error) => void;
  #controller!: ReadableStreamDefaultController<UIMessageChunk>;
  #lastSequence = -1;
  #isComplete = false;
  /** A `resume` was sent after a lost socket, and nothing has come of it yet. */
  #isContinuing = false;
  #waiting: ReturnType<typeof setTimeout> | undefined;

  constructor(options: RequestOptions) {
    this.#options = options;
    this.answer = new Promise((resolve, reject) => {
      this.#resolveAnswer = resolve;
      this.#rejectAnswer = reject;
    });
    this.answer.catch(() => {});
    this.stream = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => options.cancelled(this),
    });
  }

  get chatId(): string {
    return this.#options.frame.id;
  }

  /** The last chunk has come: only its `end` could still be missing. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** The frame to send on the socket that the request is now bound to. */
  nextFrame(): SendFrame | ResumeFrame {
    const { frame, isRepeatable } = this.#options;
    const hasChunks = this.#lastSequence >= 0;
    if (!this.isSent || (isRepeatable && !hasChunks && !this.isAborted)) {
      // The lost socket may still deliver the frame, so this one needs another id.
      if (this.isSent) this.requestId = newRequestId();
      this.isSent = true;
      return { ...frame, requestId: this.requestId } as SendFrame | ResumeFrame;
    }
    this.#isContinuing = true;
    const { id, headers, body, metadata } = frame;
    const lastSequence = hasChunks ? this.#lastSequence : undefined;
    return { type: "resume", requestId: this.requestId, id, lastSequence, headers, body, metadata };
  }

  receive(frame: ServerFrame): void {
    switch (frame.type) {
      case "start":
        return this.#resolveAnswer(this.stream);
      case "chunk":
        return this.#receiveChunk(frame);
      case "end":
        return this.end();
      case "no-active":
        if (this.#options.frame.type === "send" || this.#lastSequence >= 0) return this.fail(lostConnection());
        this.#resolveAnswer(null);
        return this.end();
      case "error": {
        const text = typeof frame.errorText === "string" ? frame.errorText : undefined;
        const code = typeof frame.code === "string" ? frame.code : undefined;
        return this.fail(this.#isContinuing ? lostConnection(text) : new ChatRefusedError(text, code));
      }
    }
  }

  end(): void {
    this.#finish(() => {
      this.#resolveAnswer(this.stream);
      this.#controller.close();
    });
  }

  fail(error: Error): void {
    this.#finish(() => {
      this.#rejectAnswer(error);
      this.#controller.error(error);
    });
  }

  /** The reader wants no more of it. */
  abort(reason: Error): void {
    this.#finish(() => {
      this.#rejectAnswer(reason);
      this.#controller.close();
    });
  }

  /** Calls back unless `stopWaiting` comes first. */
  waitAtMost(ms: number, giveUp: () => void): void {
    this.#waiting ??= setTimeout(giveUp, ms);
  }

  stopWaiting(): void {
    clearTimeout(this.#waiting);
    this.#waiting = undefined;
  }

  #receiveChunk({ sequence, chunk }: ServerFrame): void {
    if (typeof sequence !== "number" || !isChunk(chunk))
      return this.fail(new Error("The server sent a malformed chunk."));
    if (sequence <= this.#lastSequence) {
      // A server that does not know the request may answer a `resume` with the whole message, under other numbers.
      if (this.#isContinuing) this.fail(lostConnection());
      return;
    }
    if (sequence !== this.#lastSequence + 1) return this.fail(new Error("A chunk of the response is missing."));
    if (this.#isContinuing && sequence === 0 && this.#isOlderMessage(chunk)) return this.fail(lostConnection());
    this.#lastSequence = sequence;
    this.#isContinuing = false;
    this.#isComplete = isLastChunk(chunk);
    this.#resolveAnswer(this.stream);
    if (!this.#options.onlyChunksOf5 || isKnownTo5(chunk)) this.#controller.enqueue(chunk);
  }

  /** The answer to words of the user's is a new message. What continues an older one is not the answer. */
  #isOlderMessage(chunk: UIMessageChunk): boolean {
    return chunk.type === "start" && this.#options.messages.some(({ id }) => id === chunk.messageId);
  }

  #finish(tellReader: () => void): void {
    if (this.isOver) return;
    this.isOver = true;
    this.stopWaiting();
    try {
      tellReader();
    } catch {
      // The reader has cancelled the stream.
    }
  }
}

/** The AI SDK takes a `TypeError` that names the network for a lost connection, after which it can resume. */
export function lostConnection(reason?: string): TypeError {
  return new TypeError(`The network connection to the chat was lost${reason === undefined ? "." : `: ${reason}`}`);
}

/** Not `randomUUID`, which pages have only over HTTPS. */
export function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
