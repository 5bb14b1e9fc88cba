/** Real servers, each a process of its own on a free port. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..", "..");
const BIN = join(ROOT, ".venv", "bin");
const STARTING_MS = 60_000;

export interface Server {
  origin: string;
  stop(): Promise<void>;
}

/** The command `adk-stream`, as people run it. */
export function startCommand(...args: string[]): Promise<Server> {
  return start((port) => [join(BIN, "adk-stream"), ...args, "--port", String(port)]);
}

/** The agents of `agents.py`. */
export function startAgents(): Promise<Server> {
  return start((port) => [join(BIN, "python"), join(import.meta.dirname, "agents.py"), String(port)]);
}

/** The application of a page of the docs, in a file of its own. */
export function startDocumented(file: string): Promise<Server> {
  return start((port) => [join(BIN, "python"), join(import.meta.dirname, "documented.py"), file, String(port)]);
}

async function start(command: (port: number) => string[]): Promise<Server> {
  const port = await freePort();
  const [program, ...args] = command(port);
  const { GOOGLE_API_KEY: _, GEMINI_API_KEY: __, ...env } = process.env; // with a key the demo runs on Gemini
  const child = spawn(program!, args, { cwd: ROOT, env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-4_000)));
  const origin = `http://127.0.0.1:${port}`;
  const deadline = Date.now() + STARTING_MS;
  while (!(await answers(origin))) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`${program} ${args.join(" ")}:\n${said}`);
  }
  return { origin, stop: () => stop(child) };
}

async function answers(origin: string): Promise<boolean> {
  const isThere = await fetch(origin).then(
    () => true,
    () => false,
  );
  if (!isThere) await new Promise((resolve) => setTimeout(resolve, 50));
  return isThere;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGINT");
  await once(child, "exit");
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, "close");
  return port;
}
