/** The routes beside the turns themselves: which chats there are, and what was said in them. */
import { ChatRefusedError } from "adk-stream-client";
import type { UIMessage } from "ai";

export interface ChatSummary {
  id: string;
  title: string | null;
  updatedAt: string;
  /** Something in it waits for the person. */
  waiting: boolean;
}

export interface History {
  messages: UIMessage[];
  /** The id of an answer that is left out, because it is still being told. */
  running: string | undefined;
}

/** What the AI SDK of this page is, so that the server tells everything that it understands. */
export const SDK_VERSION = 7;
export const VERSION_HEADER = { "x-ai-sdk-version": String(SDK_VERSION) };

/** The server may mount the chat API elsewhere, and the page below any path. */
export function apiUrl(): string {
  const told = document.querySelector<HTMLMetaElement>('meta[name="adk-api"]')?.content;
  return new URL(told || "api/chat", document.baseURI).href.replace(/\/$/, "");
}

export class ChatsApi {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async list(): Promise<ChatSummary[]> {
    return (await this.#ask("")).json() as Promise<ChatSummary[]>;
  }

  async history(chatId: string): Promise<History> {
    const response = await this.#ask(`/${encodeURIComponent(chatId)}/messages`);
    const messages = (await response.json()) as UIMessage[];
    return { messages, running: response.headers.get("x-adk-running") ?? undefined };
  }

  /** When this is answered, the next turn may come. */
  async stop(chatId: string): Promise<void> {
    await this.#ask(`/${encodeURIComponent(chatId)}/stop`, "POST");
  }

  async delete(chatId: string): Promise<void> {
    await this.#ask(`/${encodeURIComponent(chatId)}`, "DELETE");
  }

  async #ask(path: string, method = "GET"): Promise<Response> {
    const response = await fetch(this.url + path, { method, headers: VERSION_HEADER, cache: "no-store" });
    if (!response.ok) throw new Error(await response.text());
    return response;
  }
}

/** What the server said, where it is the server that refused: over HTTP as JSON, in a live session as an error. */
export function refusalOf(error: Error): string | undefined {
  if (error instanceof ChatRefusedError) return error.message;
  try {
    const told = (JSON.parse(error.message) as { error?: { message?: unknown } } | null)?.error?.message;
    return typeof told === "string" ? told : undefined;
  } catch {
    return undefined;
  }
}

/** In a sentence for people. */
export function readableError(error: Error): Error {
  if (isDisconnect(error))
    return new Error("The server cannot be reached. What was sent may have got there.", { cause: error });
  const refusal = refusalOf(error);
  return refusal === undefined ? error : new Error(refusal, { cause: error });
}

export function isDisconnect(error: Error): boolean {
  return error instanceof TypeError && /fetch|network|load failed/i.test(error.message);
}
