/** Between the browser and a server, to be cut like a cable: what a browser calls offline leaves open sockets open. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface Proxy {
  url: string;
  cut(): () => void;
  stop(): void;
}

export async function startProxy(target: string): Promise<Proxy> {
  const { hostname, port, pathname } = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((socket) => {
    if (isCut) return void socket.destroy();
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const dropAll = () => sockets.forEach((socket) => socket.destroy());
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}${pathname}`,
    cut() {
      isCut = true;
      dropAll();
      return () => (isCut = false);
    },
    stop() {
      server.close();
      dropAll();
    },
  };
}
