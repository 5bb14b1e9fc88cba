/** One socket: its frames, its pings, and the moment when it counts as dead. */
import { DEFAULT_AUDIO_RATE, OWN } from "./frames.ts";

/** The part of a `WebSocket` that is used here. The one of the `ws` package has it as well. */
export interface WebSocketLike {
  readonly readyState: number;
  readonly bufferedAmount?: number;
  readonly protocol?: string;
  binaryType?: string;
  send(data: string | ArrayBuffer): void;
  close(code?: number, reason?: string): void;
  // The events of the DOM and those of `ws` have no type in common.
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
}

export type WebSocketConstructor = new (url: string | URL, protocols?: string | string[]) => WebSocketLike;

export interface Liveness {
  /** A ping is sent this often. */
  pingMs: number;
  /** A socket that stays silent for so long after a ping, or that takes so long to open, is dead. */
  deadMs: number;
}

export interface ConnectionHandlers {
  opened(connection: Connection): void;
  text(connection: Connection, text: string): void;
  binary(connection: Connection, data: ArrayBuffer): void;
  /** Once, whoever closed it. */
  closed(connection: Connection, code: number | undefined): void;
}

const OPEN = 1;
/** A socket that has spoken this lately is taken to be alive. */
const FRESH_MS = 2_000;
/** A socket that is asked and stays silent for this long is dead: sockets die unnoticed while a device sleeps. */
const ASK_MS = 5_000;
const PING = JSON.stringify({ type: "ping", requestId: OWN });

export class Connection {
  /** Something has come from the server. Without one, a proxy may accept sockets and close them again. */
  isProven = false;
  /** The chat and the rate of the binary frames. The server names them before the first one. */
  audio: { id: string | undefined; rate: number } = { id: undefined, rate: DEFAULT_AUDIO_RATE };

  readonly #socket: WebSocketLike;
  readonly #liveness: Liveness;
  readonly #handlers: ConnectionHandlers;
  #isClosed = false;
  #lastHeard = 0;
  #pingTimer: ReturnType<typeof setInterval> | undefined;
  #deadTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(socket: WebSocketLike, liveness: Liveness, handlers: ConnectionHandlers) {
    this.#socket = socket;
    this.#liveness = liveness;
    this.#handlers = handlers;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.#opened();
    socket.onmessage = ({ data }: { data: unknown }) => this.#received(data);
    socket.onerror = () => this.close();
    socket.onclose = (event?: { code?: number }) => this.close(event?.code);
    this.#expectLife(liveness.deadMs);
  }

  get isOpen(): boolean {
    return !this.#isClosed && this.#socket.readyState === OPEN;
  }

  get isFresh(): boolean {
    // Not `performance.now()`, which stands still while a device sleeps.
    return Math.abs(Date.now() - this.#lastHeard) < FRESH_MS;
  }

  get protocol(): string {
    return this.#socket.protocol ?? "";
  }

  /** Bytes that the network has not taken yet. */
  get waitingBytes(): number {
    return this.#socket.bufferedAmount ?? 0;
  }

  /** A string is a frame that is JSON already. */
  send(frame: object | ArrayBuffer | string): void {
    const isReady = typeof frame === "string" || frame instanceof ArrayBuffer;
    if (this.isOpen) this.#socket.send(isReady ? frame : JSON.stringify(frame));
  }

  /** Asks for a sign of life. Any frame is one. */
  ask(): void {
    this.#socket.send(PING);
    clearTimeout(this.#deadTimer);
    this.#expectLife(Math.min(ASK_MS, this.#liveness.deadMs));
  }

  close(code?: number): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#pingTimer);
    clearTimeout(this.#deadTimer);
    try {
      this.#socket.close(1000);
    } catch {
      // It was never open, or is closed already.
    }
    this.#handlers.closed(this, code);
  }

  #opened(): void {
    if (this.#isClosed) return;
    this.#heard();
    this.#pingTimer = setInterval(() => {
      if (this.isOpen) this.#socket.send(PING);
      if (this.#deadTimer === undefined) this.#expectLife(this.#liveness.deadMs);
    }, this.#liveness.pingMs);
    this.#handlers.opened(this);
  }

  #received(data: unknown): void {
    if (this.#isClosed) return;
    this.#heard();
    if (typeof data === "string") this.#handlers.text(this, data);
    else if (data instanceof ArrayBuffer) this.#handlers.binary(this, data);
  }

  #expectLife(withinMs: number): void {
    this.#deadTimer = setTimeout(() => this.close(), withinMs);
  }

  #heard(): void {
    this.#lastHeard = Date.now();
    clearTimeout(this.#deadTimer);
    this.#deadTimer = undefined;
  }
}
