/** A `fetch` that keeps what went over the wire, so that a test can look at both sides of every request. */
import type { Release } from "./releases.ts";
import { errorText, judgeChunks } from "./wire.ts";

export interface RecordedResponse {
  status: number;
  headers: Record<string, string>;
  /** The raw text: SSE of a good response, the refusal of another. */
  text: string;
  /** False when the client or the server cut the response short. */
  complete: boolean;
  chunks: unknown[];
  schemaErrors: { chunk: unknown; error: string }[];
}

export interface RecordedRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: unknown;
  response: RecordedResponse | null;
  networkError: string | null;
}

export class Recorder {
  readonly requests: RecordedRequest[] = [];
  readonly #release: Release;
  readonly #deadline: AbortSignal;
  readonly #onAnswer: () => void;
  readonly #readings: Promise<void>[] = [];

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

  /** Resolves when every response has been read to its end, or cut at the deadline, and judged by the schema. */
  async settled(): Promise<void> {
    await Promise.all(this.#readings);
    for (const { response } of this.requests) {
      if (response !== null && response.status === 200) await this.#judge(response);
    }
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
