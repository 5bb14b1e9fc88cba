/** The options of the transport: those of the AI SDK's `WebSocketChatTransport`, and a few of ours. */
import type { UIMessage } from "ai";
import type { WebSocketConstructor } from "./connection.ts";
import type { Backoff } from "./link.ts";

export type Resolvable<T> = T | PromiseLike<T> | (() => T | PromiseLike<T>);

export interface LiveChatTransportOptions<M extends UIMessage = UIMessage> {
  /** The address of the live route, which may be relative to the page. `http(s)` becomes `ws(s)`. */
  url: string;
  /** `adk-stream.v1` unless told otherwise, for voice in binary frames. An empty list offers none. */
  protocols?: string | string[];
  /** Query parameters of the address, resolved anew for each connection. */
  params?: Resolvable<Record<string, string>>;
  /** Headers inside of each request's frame; browsers let no page set those of the connection itself. */
  headers?: Resolvable<Record<string, string> | Headers>;
  /** Goes along with each request. */
  body?: Resolvable<object>;
  /** Which AI SDK the page has; without it the server decides. */
  sdkVersion?: 5 | 6 | 7;
  /** Another `WebSocket`, such as the one of the `ws` package. */
  webSocket?: WebSocketConstructor;
  prepareSendMessagesRequest?: (options: {
    id: string;
    messages: M[];
    requestMetadata: unknown;
    body: object;
    headers: Record<string, string>;
    trigger: "submit-message" | "regenerate-message";
    messageId: string | undefined;
  }) => PreparedRequest<M> | PromiseLike<PreparedRequest<M>>;
  prepareReconnectToStreamRequest?: (options: {
    id: string;
    requestMetadata: unknown;
    body: object;
    headers: Record<string, string>;
  }) => PreparedResume | PromiseLike<PreparedResume>;
  timing?: Partial<Timing>;
}

export interface PreparedResume {
  body?: object;
  headers?: HeadersInit;
}

export interface PreparedRequest<M extends UIMessage> extends PreparedResume {
  messages?: M[];
}

export interface Timing {
  /** A ping is sent this often: below the idle time of common proxies. */
  pingMs: number;
  /** A socket without a sign of life for this long after a ping is dead. */
  deadMs: number;
  /** A request that finds no server for this long fails. */
  giveUpMs: number;
  /** A live session waits half a minute for its client: several attempts have to fit into that. */
  backoff: Backoff;
}

export const DEFAULT_TIMING: Timing = {
  pingMs: 20_000,
  deadMs: 20_000,
  giveUpMs: 60_000,
  backoff: { firstMs: 500, maxMs: 5_000 },
};

export async function resolve<T>(value: Resolvable<T>): Promise<T> {
  return typeof value === "function" ? (value as () => T | PromiseLike<T>)() : value;
}

/** Later ones win. */
export function mergeHeaders(...sources: (HeadersInit | undefined)[]): Record<string, string> {
  const merged = new Headers();
  for (const source of sources) {
    const headers = source instanceof Headers || Array.isArray(source) ? [...source] : Object.entries(source ?? {});
    // Plain objects may hold undefined, whatever their type says.
    for (const [name, value] of headers) if (value != null) merged.set(name!, value);
  }
  return Object.fromEntries(merged);
}

export function socketUrl(url: string, params: Record<string, string>): URL {
  const address = new URL(url, globalThis.location?.href);
  address.protocol = address.protocol.replace(/^http/, "ws");
  if (address.protocol !== "ws:" && address.protocol !== "wss:")
    throw new Error(`Not the address of a WebSocket: ${url}`);
  for (const [name, value] of Object.entries(params)) address.searchParams.set(name, value);
  address.hash = "";
  return address;
}
