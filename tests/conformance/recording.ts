/** A `fetch` and a `WebSocket` that keep what went over the wire, so that a test can look at both sides of a request. */
import type { Release } from "./releases.ts";
import { errorText, judgeChunks } from "./wire.ts";

export interface RecordedResponse {
  status: number;
  headers: Record<string, string>;
  /** The raw text: SSE of a good response, the refusal of another. Chunks of a socket are written down as SSE too. */
  text: string;
  /** False when the client or the server cut the response short. */
  complete: boolean;
  chunks: unknown[];
  schemaErrors: { chunk: unknown; error: string }[];
}

export interface RecordedRequest {
  /** On a socket it is the kind of the frame: `send` or `resume`. */
  method: string;
  url: string;
  headers: Record<string, string>;
  body: unknown;
  response: RecordedResponse | null;
  networkError: string | null;
}

interface Frame {
  type: string;
  requestId: string;
  [field: string]: unknown;
}

/** What is no part of a request's stream. */
const OWN = "-";

export class Recorder {
  readonly requests: RecordedRequest[] = [];
  /** Frames of the server's that belong to no request. */
  readonly ownFrames: Frame[] = [];
  readonly #release: Release;
  readonly #deadline: AbortSignal;
  readonly #onAnswer: () => void;
  readonly #readings: Promise<void>[] = [];
  readonly #requestsOnSockets = new Map<string, RecordedRequest>();

  constructor(release: Release, deadline: AbortSignal, onAnswer: () => void) {
    this.#release = release;
    this.#deadline = deadline;
    this.#onAnswer = onAnswer;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const request: RecordedRequest = {
      method: init?.method ?? "GET",
      url: String(input),
      headers: Object.fromEntries(new Headers(init?.headers)),
      body: typeof init?.body === "string" ? JSON.parse(init.body) : null,
      response: null,
      networkError: null,
    };
    this.requests.push(request);
    try {
      const response = await fetch(input, init);
      return this.#record(request, response);
    } catch (error) {
      request.networkError = errorText(error);
      throw error;
    }
  };

  get WebSocket(): typeof WebSocket {
    const sent = (url: string, frame: Frame) => this.#sent(url, frame);
    const received = (frame: Frame) => this.#received(frame);
    return class extends WebSocket {
      constructor(url: string | URL, protocols?: string | string[]) {
        super(url, protocols);
        // Before the client's own listener: what the client knows is written down.
        this.addEventListener("message", ({ data }) => {
          if (typeof data === "string") received(JSON.parse(data) as Frame);
        });
      }

      override send(data: Parameters<WebSocket["send"]>[0]): void {
        if (typeof data === "string") sent(this.url, JSON.parse(data) as Frame);
        super.send(data);
      }
    };
  }

  /**
   * Resolves when every response has been read to its end, or cut at the deadline, and judged by the schema. What has
   * come on a socket is there already.
   */
  async settled(): Promise<void> {
    await Promise.all(this.#readings);
    for (const { response } of this.requests) {
      if (response !== null && response.status === 200) await this.#judge(response);
    }
  }

  #sent(url: string, { type, requestId, headers, ...body }: Frame): void {
    if (type !== "send" && type !== "resume") return;
    // Asked for the rest of a response on another socket, the server goes on with the same request.
    if (this.#requestsOnSockets.has(requestId)) return;
    const request: RecordedRequest = {
      method: type,
      url,
      headers: headers as Record<string, string>,
      body,
      response: null,
      networkError: null,
    };
    this.requests.push(request);
    this.#requestsOnSockets.set(requestId, request);
  }

  #received(frame: Frame): void {
    if (frame.requestId === OWN) {
      this.ownFrames.push(frame);
      return;
    }
    const request = this.#requestsOnSockets.get(frame.requestId);
    if (request === undefined) return;
    request.response ??= { status: 200, headers: {}, text: "", complete: false, chunks: [], schemaErrors: [] };
    readFrame(frame, request.response);
    this.#onAnswer();
  }

  #record(request: RecordedRequest, response: Response): Response {
    const recorded: RecordedResponse = {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      text: "",
      complete: true,
      chunks: [],
      schemaErrors: [],
    };
    request.response = recorded;
    this.#onAnswer();
    if (response.body === null) return response;
    // A client stops reading at its first error; the copy is read on, so that the record shows all of them.
    const [forClient, forRecord] = response.body.tee();
    this.#readings.push(readInto(recorded, forRecord, this.#deadline));
    return new Response(forClient, response);
  }

  async #judge(response: RecordedResponse): Promise<void> {
    for await (const chunk of judgeChunks(this.#release, response.text)) {
      if (chunk.success) response.chunks.push(chunk.value);
      else response.schemaErrors.push({ chunk: chunk.rawValue, error: errorText(chunk.error) });
    }
  }
}

function readFrame(frame: Frame, response: RecordedResponse): void {
  switch (frame.type) {
    case "chunk": {
      const expected = response.text.split("\n\n").length - 1;
      if (frame.sequence !== expected) {
        response.schemaErrors.push({ chunk: frame, error: `chunk ${frame.sequence} instead of ${expected}` });
      }
      response.text += `data: ${JSON.stringify(frame.chunk)}\n\n`;
      break;
    }
    case "end":
      response.text += "data: [DONE]\n\n";
      response.complete = true;
      break;
    case "no-active":
      // Asked for the rest of a response: there is none, and it stays what it was.
      if (response.text !== "") break;
      response.status = 204;
      response.complete = true;
      break;
    case "error":
      response.status = 400;
      response.text = JSON.stringify(frame);
      response.complete = true;
  }
}

async function readInto(recorded: RecordedResponse, body: ReadableStream<Uint8Array>, deadline: AbortSignal) {
  const decoder = new TextDecoder();
  const text = new WritableStream<Uint8Array>({
    write: (bytes) => void (recorded.text += decoder.decode(bytes, { stream: true })),
  });
  try {
    await body.pipeTo(text, { signal: deadline });
  } catch {
    recorded.complete = false;
  }
}
