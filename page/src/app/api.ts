/** The routes besides the turns: the list of chats, what was said in them, stopping and deleting. */
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
  /** The id of the answer that is still running, which `messages` leaves out. */
  running: string | undefined;
}

/** The AI SDK of this page. With it the server knows which chunks the page understands. */
export const SDK_VERSION = 7;
export const VERSION_HEADER = { "x-ai-sdk-version": String(SDK_VERSION) };

/** The server may mount the chat API elsewhere, and the page below any path. */
export function apiUrl(): string {
  const configured = document.querySelector<HTMLMetaElement>('meta[name="adk-api"]')?.content;
  return new URL(configured || "api/chat", document.baseURI).href.replace(/\/$/, "");
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

  /** Once the server has answered this, the next turn may begin. */
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

/** The server's sentence, if the server refused. Over HTTP it comes as JSON, in a live session as an error. */
export function refusalOf(error: Error): string | undefined {
  if (error instanceof ChatRefusedError) return error.message;
  try {
    const sentence = (JSON.parse(error.message) as { error?: { message?: unknown } } | null)?.error?.message;
    return typeof sentence === "string" ? sentence : undefined;
  } catch {
    return undefined;
  }
}

/** The same error with a message for people. */
export function readableError(error: Error): Error {
  if (isDisconnect(error))
    return new Error("The server cannot be reached. It may have received what you sent.", { cause: error });
  const refusal = refusalOf(error);
  return refusal === undefined ? error : new Error(refusal, { cause: error });
}

export function isDisconnect(error: Error): boolean {
  return error instanceof TypeError && /fetch|network|load failed/i.test(error.message);
}
