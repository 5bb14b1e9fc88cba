/** The routes besides the turns: the list of chats, what was said in them, stopping and deleting, the inbox. */
import { ChatRefusedError } from "adk-stream-client";
import type { UIMessage } from "ai";
import type { TrailLine } from "../conversation/actions.ts";
import { told } from "../told.ts";
import type { Mode } from "../wire/log.ts";

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

/** What waits for a decision of the caller. It also has the fields of `data-adk-approval`. */
export interface InboxEntry {
  id: string;
  /** Who asks. */
  user: string;
  tool: string;
  arguments: unknown;
  /** Of exactly what is shown here. */
  digest: string;
  askedAt: string;
  status: string;
  /** Whoever decided, where there is no chain. */
  by?: string;
  [about: string]: unknown;
}

export interface InboxPage {
  approvals: InboxEntry[];
  /** For the next page, if there is one. */
  cursor: string | null;
}

export interface InboxDecision {
  approved: boolean;
  digest: string;
  reason?: string;
  payload?: unknown;
}

/** The AI SDK of this page. With it the server knows which chunks the page understands. */
export const SDK_VERSION = 7;

/** The server may mount the chat API elsewhere, and the page below any path. */
export function apiUrl(): string {
  return new URL(told("adk-api") || "api/chat", document.baseURI).href.replace(/\/$/, "");
}

export class ChatsApi {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly liveUrl: string;

  /** `user`: whom the page is opened as, where nobody logs in. */
  constructor(url: string, user?: string) {
    this.url = url;
    this.headers = {
      "x-ai-sdk-version": String(SDK_VERSION),
      ...(user !== undefined && { "x-demo-user": user }),
    };
    // A page cannot give headers to a socket.
    this.liveUrl = `${url}/live${user === undefined ? "" : `?${new URLSearchParams({ user })}`}`;
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

  async audit(chatId: string): Promise<TrailLine[]> {
    return (await this.#ask(`/${encodeURIComponent(chatId)}/audit`)).json() as Promise<TrailLine[]>;
  }

  async approvals(cursor: string | null): Promise<InboxPage> {
    const query = cursor === null ? "" : `?${new URLSearchParams({ cursor })}`;
    return (await this.#ask(`/approvals${query}`)).json() as Promise<InboxPage>;
  }

  /** Gives what is recorded then. */
  async decide(id: string, decision: InboxDecision): Promise<InboxEntry> {
    const response = await this.#ask(`/approvals/${encodeURIComponent(id)}`, "POST", JSON.stringify(decision));
    return response.json() as Promise<InboxEntry>;
  }

  async #ask(path: string, method = "GET", body?: string): Promise<Response> {
    const headers = { ...this.headers, ...(body !== undefined && { "content-type": "application/json" }) };
    const response = await fetch(this.url + path, { method, headers, body, cache: "no-store" });
    if (!response.ok) throw new RequestRefused(await response.text(), response.status);
    return response;
  }
}

/** The server's answer, as it came. */
export class RequestRefused extends Error {
  readonly status: number;

  constructor(text: string, status: number) {
    super(text);
    this.status = status;
  }
}

/** What the server refused with. Over HTTP it comes as JSON, in a live session as an error. */
function readRefusal(error: Error): { message?: unknown; code?: unknown } {
  if (error instanceof ChatRefusedError) return error;
  try {
    return (JSON.parse(error.message) as { error?: object } | null)?.error ?? {};
  } catch {
    return {};
  }
}

/** The server's sentence, if the server refused. */
export function refusalOf(error: Error): string | undefined {
  const { message } = readRefusal(error);
  return typeof message === "string" ? message : undefined;
}

/** The code of the server's refusal, if it has refused. */
export function codeOf(error: Error | undefined): string | undefined {
  const code = error === undefined ? undefined : readRefusal(error).code;
  return typeof code === "string" ? code : undefined;
}

export const NO_LIVE_MODE = "no-live-mode";

/** Whether the same request may succeed when it is sent again. What a live session cannot do, a chat may. */
export function mayRetry(error: Error | undefined, mode: Mode): boolean {
  const code = codeOf(error);
  return code !== DOES_NOT_FIT && !(code === NO_LIVE_MODE && mode === "live");
}

/** The output of a browser tool, or the answer to a form. The call is still open. */
export const DOES_NOT_FIT = "output-does-not-fit";

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
