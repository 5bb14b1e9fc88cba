/** A socket without a network, for tests in which the clock is the test's. */
import type { TestContext } from "node:test";
import type { WebSocketLike } from "../../src/connection.ts";
import type { LiveChatTransportOptions } from "../../src/options.ts";
import { LiveChatTransport } from "../../src/transport.ts";

export class FakeSocket implements WebSocketLike {
  readyState = 0;
  protocol = "";
  bufferedAmount = 0;
  readonly sent: (string | ArrayBuffer)[] = [];
  onopen: WebSocketLike["onopen"] = null;
  onmessage: WebSocketLike["onmessage"] = null;
  onerror: WebSocketLike["onerror"] = null;
  onclose: WebSocketLike["onclose"] = null;

  get frames(): { type: string; [field: string]: unknown }[] {
    return this.sent.filter((frame) => typeof frame === "string").map((frame) => JSON.parse(frame));
  }

  open(): void {
    this.readyState = 1;
    this.onopen?.({});
  }

  say(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }

  /** The other end is gone, or was never there. */
  drop(): void {
    this.readyState = 3;
    this.onclose?.({ code: 1006 });
  }

  send(data: string | ArrayBuffer): void {
    this.sent.push(data);
  }

  close(): void {
    this.readyState = 3;
  }
}

/** A transport whose sockets are fakes, under a clock that stands still. */
export function fakeTransport(t: TestContext, options: Partial<LiveChatTransportOptions> = {}) {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  const sockets: FakeSocket[] = [];
  class Socket extends FakeSocket {
    constructor() {
      super();
      sockets.push(this);
    }
  }
  const transport = new LiveChatTransport({ url: "ws://host/live", webSocket: Socket, ...options });
  t.after(() => transport.close());
  return { transport, sockets };
}

/** Lets what was promised happen, without letting time pass. */
export function promises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
