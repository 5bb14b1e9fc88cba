/**
 * The real clients behind a pipe: one JSON command per line on standard input, one JSON answer per line on
 * standard output, in order. A command that fails is answered with `{"failure": "..."}`; the driver lives on.
 */
import { Console } from "node:console";
import { stderr, stdin, stdout } from "node:process";
import { createInterface } from "node:readline";
import { chat, type ChatCommand } from "./chat.ts";
import { fold, type FoldCommand } from "./fold.ts";
import { loadRelease, RELEASE_NAMES } from "./releases.ts";
import { errorText } from "./wire.ts";

// Standard output belongs to the answers; the packages warn through the console.
globalThis.console = new Console(stderr);

async function releases(): Promise<Record<string, { ai: string; react: string }>> {
  const all = await Promise.all(RELEASE_NAMES.map(loadRelease));
  return Object.fromEntries(all.map(({ name, versions }) => [name, versions]));
}

const COMMANDS = { chat, fold, releases };

type Command = ({ command: "chat" } & ChatCommand) | ({ command: "fold" } & FoldCommand) | { command: "releases" };

async function answer(command: Command): Promise<object> {
  const carryOut = COMMANDS[command.command] as (command: Command) => Promise<object>;
  return carryOut(command);
}

for await (const line of createInterface({ input: stdin })) {
  const command = JSON.parse(line) as Command;
  const result = await answer(command).catch((error: unknown) => ({ failure: errorText(error) }));
  stdout.write(`${JSON.stringify(result)}\n`);
}
