/** A server that says what a test tells it to, in the frames of `docs/reference/websocket.md`. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import type { UIMessageChunk } from "ai";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { until } from "./until.ts";

export interface Frame {
  type: string;
  requestId: string;
  // Tests know what they expect in which frame.
  [field: string]: any;
}

export interface ServerOptions {
  /** Which subprotocol is selected, of those that are offered. */
  protocol?: string | false;
}

export class TestServer {
  readonly peers: Peer[] = [];
  #server: WebSocketServer;
  readonly #options: ServerOptions;

  static async start(t: TestContext, options: ServerOptions = {}): Promise<TestServer> {
    const server = new TestServer(options);
    await once(server.#server, "listening");
    t.after(() => server.stop());
    return server;
  }

  private constructor(options: ServerOptions) {
    this.#options = options;
    this.#server = this.#listen(0);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/live`;
  }

  /** The socket that was opened as the `place`-th. */
  async peer(place: number): Promise<Peer> {
    await until(() => this.peers.length > place, `socket ${place} is opened`);
    return this.peers[place]!;
  }

  async stop(): Promise<void> {
    for (const peer of this.peers) peer.drop();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Nobody is at home for a while, and then somebody is under the same address. */
  async restart(meanwhile: () => Promise<void>): Promise<void> {
    const { port } = this.#server.address() as AddressInfo;
    await this.stop();
    await meanwhile();
    this.#server = this.#listen(port);
    await once(this.#server, "listening");
  }

  #listen(port: number): WebSocketServer {
    const { protocol = "adk-stream.v1" } = this.#options;
    const handleProtocols = (offered: Set<string>) => (protocol !== false && offered.has(protocol) ? protocol : false);
    const server = new WebSocketServer({ host: "127.0.0.1", port, handleProtocols });
    server.on("connection", (socket, { url }) => this.peers.push(new Peer(socket, url ?? "")));
    return server;
  }
}

/** The server's end of one socket. It answers `ping` and `attach` by itself, as the server does. */
export class Peer {
  readonly path: string;
  readonly frames: Frame[] = [];
  readonly voice: Buffer[] = [];
  isClosed = false;
  readonly #socket: WebSocket;
  readonly #unread: Frame[] = [];

  constructor(socket: WebSocket, path: string) {
    this.#socket = socket;
    this.path = path;
    socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    socket.on("close", () => {
      this.isClosed = true;
    });
  }

  /** The next frame of this type that the test has not looked at. */
  async next(type: string): Promise<Frame> {
    const place = () => this.#unread.findIndex((frame) => frame.type === type);
    await until(() => place() !== -1, `a frame of type ${type} comes; there were: ${JSON.stringify(this.frames)}`);
    return this.#unread.splice(place(), 1)[0]!;
  }

  say(frame: Frame): void {
    this.#socket.send(JSON.stringify(frame));
  }

  own(type: string, fields: object = {}): void {
    this.say({ type, requestId: "-", ...fields });
  }

  sayVoice(samples: number[]): void {
    this.#socket.send(Buffer.from(new Int16Array(samples).buffer));
  }

  /** Chunks of a request, numbered from `first`. */
  tell({ requestId }: { requestId: string }, chunks: UIMessageChunk[], first = 0): void {
    chunks.forEach((chunk, place) => this.say({ type: "chunk", requestId, sequence: first + place, chunk }));
  }

  /** The rest of a request's stream, and its end. */
  finish(request: { requestId: string }, chunks: UIMessageChunk[], first = 0): void {
    this.tell(request, chunks, first);
    this.say({ type: "end", requestId: request.requestId });
  }

  close(code: number): void {
    this.#socket.close(code);
  }

  /** As if the network had gone: no closing handshake. */
  drop(): void {
    this.#socket.terminate();
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (isBinary) return void this.voice.push(data as Buffer);
    const frame = JSON.parse(String(data)) as Frame;
    if (frame.type === "ping") return this.own("pong");
    this.frames.push(frame);
    this.#unread.push(frame);
    if (frame.type === "attach") this.own("attached", { id: frame.id });
  }
}

/** The chunks of an answer of one text, in as many pieces. */
export function answer(messageId: string, ...pieces: string[]): UIMessageChunk[] {
  return [
    { type: "start", messageId },
    { type: "start-step" },
    { type: "text-start", id: "t" },
    ...pieces.map((delta): UIMessageChunk => ({ type: "text-delta", id: "t", delta })),
    { type: "text-end", id: "t" },
    { type: "finish-step" },
    { type: "finish", finishReason: "stop" },
  ];
}
