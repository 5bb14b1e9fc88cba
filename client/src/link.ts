/** Keeps a socket as long as one is needed: opens it, opens it again, and moves to another one when asked to. */
import { Connection, type ConnectionHandlers, type Liveness, type WebSocketLike } from "./connection.ts";

export interface Backoff {
  firstMs: number;
  maxMs: number;
}

export interface LinkOptions {
  /** What the address needs, such as a token. May fail for a while, as the network does. */
  params: () => Promise<Record<string, string>>;
  /** Throws where another try cannot help: for a wrong address, or where there is no WebSocket. */
  makeSocket: (params: Record<string, string>) => WebSocketLike;
  liveness: Liveness;
  backoff: Backoff;
}

export interface LinkHandlers extends ConnectionHandlers {
  isNeeded(): boolean;
  /** Trying again would not help. */
  refused(error: Error): void;
}

/** The close code of a server that refuses this client. */
const POLICY_VIOLATION = 1008;

export class Link {
  readonly #options: LinkOptions;
  readonly #handlers: LinkHandlers;
  #current: Connection | undefined;
  /** Sockets that the server asked us to leave. They are read until they close or are done. */
  readonly #leaving = new Set<Connection>();
  /** The attempt that is under way. Each is a new object, so that an older one notices that it was overtaken. */
  #attempt: { connection?: Connection } | undefined;
  #attempts = 0;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #isClosing = false;

  constructor(options: LinkOptions, handlers: LinkHandlers) {
    this.#options = options;
    this.#handlers = handlers;
  }

  /** For requests: an open socket that the server means to keep. */
  get connection(): Connection | undefined {
    return this.#current?.isOpen ? this.#current : undefined;
  }

  /** For voice, which cannot wait for the next socket while the last one still listens. */
  get voice(): Connection | undefined {
    return this.connection ?? [...this.#leaving].at(-1);
  }

  /** Opens a socket at once, unless there is one or one is being opened. */
  open(): void {
    if (this.#current === undefined && this.#attempt === undefined) void this.#connect();
  }

  /** The server goes away: the next socket is opened while this one still brings its last frames. */
  move(connection: Connection): void {
    if (connection !== this.#current) return;
    this.#current = undefined;
    this.#leaving.add(connection);
    if (this.#handlers.isNeeded()) this.#retryLater();
    else connection.close();
  }

  /** Once there is a new socket, closes those of the old ones that are done. */
  leave(isDone: (connection: Connection) => boolean): void {
    if (this.#current === undefined) return;
    for (const connection of [...this.#leaving].filter(isDone)) connection.close();
  }

  close(): void {
    this.#isClosing = true;
    this.#stopWaiting();
    const attempt = this.#attempt;
    this.#attempt = undefined;
    for (const connection of [attempt?.connection, this.#current, ...this.#leaving]) connection?.close();
    this.#isClosing = false;
  }

  async #connect(): Promise<void> {
    this.#stopWaiting();
    const attempt: { connection?: Connection } = {};
    this.#attempt = attempt;
    let params: Record<string, string>;
    try {
      params = await this.#options.params();
    } catch {
      if (this.#attempt !== attempt) return;
      this.#attempt = undefined;
      return this.#retryLater();
    }
    if (this.#attempt !== attempt) return;
    try {
      attempt.connection = new Connection(this.#options.makeSocket(params), this.#options.liveness, {
        opened: (connection) => this.#opened(connection),
        text: (connection, text) => this.#received(connection, text),
        binary: (connection, data) => this.#handlers.binary(connection, data),
        closed: (connection, code) => this.#closed(connection, code),
      });
    } catch (error) {
      this.#attempt = undefined;
      this.#handlers.refused(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #opened(connection: Connection): void {
    this.#attempt = undefined;
    this.#current = connection;
    this.#handlers.opened(connection);
  }

  #received(connection: Connection, text: string): void {
    if (!connection.isProven) {
      connection.isProven = true;
      this.#attempts = 0;
    }
    this.#handlers.text(connection, text);
  }

  #closed(connection: Connection, code: number | undefined): void {
    if (this.#current === connection) this.#current = undefined;
    if (this.#attempt?.connection === connection) this.#attempt = undefined;
    this.#leaving.delete(connection);
    this.#handlers.closed(connection, code);
    if (code === POLICY_VIOLATION) this.#handlers.refused(new Error("The server refused the connection."));
    else this.#retryLater();
  }

  #retryLater(): void {
    if (this.#current !== undefined || this.#attempt !== undefined || this.#retryTimer !== undefined) return;
    if (this.#isClosing || !this.#handlers.isNeeded()) return;
    this.#retryTimer = setTimeout(this.#retry, backoffDelay(this.#attempts, this.#options.backoff));
    this.#attempts += 1;
    globalThis.addEventListener?.("online", this.#retry);
  }

  readonly #retry = (): void => {
    this.#stopWaiting();
    if (this.#handlers.isNeeded()) this.open();
  };

  #stopWaiting(): void {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
    globalThis.removeEventListener?.("online", this.#retry);
  }
}

/** Doubles with every attempt. Half of it is chance, so that a server that comes back is not met by all at once. */
export function backoffDelay(attempt: number, { firstMs, maxMs }: Backoff): number {
  const full = Math.min(maxMs, firstMs * 2 ** attempt);
  return full / 2 + (Math.random() * full) / 2;
}
