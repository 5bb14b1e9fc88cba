/** What is on the wire, and what is made of it. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChatPage } from "./chat-page.ts";
import { visit } from "./harness.ts";
import { startCommand } from "./servers.ts";

visit("every chunk is shown, and beside each part those that built it", {}, async ({ chat }) => {
  await chat.say("What is the weather in Tokyo?");
  await chat.shows(/The weather in Tokyo is/);
  await chat.isIdle();
  await chat.page.keyboard.press("Control+i");
  const { inspector } = chat;
  for (const type of ["tool-input-start", "tool-input-available", "tool-output-available", "text-delta", "finish"]) {
    await inspector.getByText(type, { exact: true }).first().waitFor();
  }
  await inspector.getByRole("tab", { name: "Message" }).click();
  await inspector.getByText(/"output-available"/).first().waitFor();
  await inspector.getByRole("tab", { name: "Request" }).click();
  await inspector.getByText(/What is the weather in Tokyo/).first().waitFor();
  await inspector.getByRole("tab", { name: /Raw/ }).click();
  await inspector.getByText(/data: \{"type":"start"/).first().waitFor();
  await chat.log.getByRole("button", { name: /chunks? built this part/ }).first().click();
  await inspector.getByText("tool-output-available", { exact: true }).first().waitFor();
  assert.equal(await inspector.getByText("text-delta", { exact: true }).count(), 0, "only those of the tool");
});

visit("what was recorded is played again by adk-stream replay", {}, async ({ chat, context }) => {
  await converse(chat, { prompt: "Send 50 dollars to Hanako" });
  await chat.page.keyboard.press("Control+i");
  const download = chat.page.waitForEvent("download");
  await chat.button(/^Download/).click();
  const folder = await mkdtemp(join(tmpdir(), "recording-"));
  const file = join(folder, "chat.jsonl");
  await (await download).saveAs(file);
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.ok(lines.every(({ at, exchange, direction }) => at >= 0 && exchange >= 1 && direction));
  const replay = await startCommand("replay", file);
  const viewer = await context.browser()!.newContext();
  try {
    const again = new ChatPage(await viewer.newPage());
    await again.page.goto(replay.origin);
    await converse(again, { prompt: "Whatever" });
  } finally {
    await viewer.close();
    await replay.stop();
    await rm(folder, { recursive: true });
  }

  async function converse(on: ChatPage, { prompt }: { prompt: string }): Promise<void> {
    for (const [mode, balance] of [["Chat", 950], ["Live", 900]] as const) {
      await on.switchTo(mode);
      await on.say(prompt);
      await on.accept("Hanako");
      await on.shows(new RegExp(`The new balance is ${balance} USD`));
      await on.isIdle();
    }
  }
});
