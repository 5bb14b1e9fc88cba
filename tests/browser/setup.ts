/** Once for the whole run: the browser is unpacked, and two servers run. Every test is a user of its own on them. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { prepare } from "./chromium.ts";
import { type Server, startAgents, startCommand } from "./servers.ts";

const servers: Server[] = [];

export async function globalSetup(): Promise<void> {
  await rm(join(import.meta.dirname, "failures"), { recursive: true, force: true });
  const [demo, agents] = await Promise.all([startCommand("demo"), startAgents(), prepare()]);
  servers.push(demo, agents);
  process.env.DEMO = `${demo.origin}/`;
  process.env.AGENTS = agents.origin;
}

export async function globalTeardown(): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()));
}
