/** Modes, voice and connections. */
import assert from "node:assert/strict";
import type { ChatPage } from "./chat-page.ts";
import { eventually, visit } from "./harness.ts";
import { hearNothing, hearSomething } from "./loudspeaker.ts";

visit("the modes are switched in mid-conversation, both ways", {}, async ({ chat }) => {
  await chat.say("Send 50 dollars to Hanako");
  await chat.accept("Hanako");
  await chat.shows(/The new balance is 950 USD/);
  await chat.isIdle();
  await chat.switchTo("Live");
  await chat.say("Send 50 dollars to Taro");
  await chat.accept("Taro");
  await chat.shows(/The new balance is 900 USD/);
  await chat.isIdle();
  await chat.switchTo("Chat");
  await chat.say("Send 100 dollars to Yuki");
  await chat.accept("Yuki");
  await chat.shows(/The new balance is 800 USD/);
  assert.equal(await chat.answers.count(), 3);
  await chat.page.reload();
  await chat.shows(/The new balance is 800 USD/);
  assert.equal(await chat.answers.count(), 3);
});

visit("an approval asked for in one mode is given in the other", {}, async ({ chat }) => {
  await chat.say("Send 50 dollars to Hanako");
  await chat.approve.first().waitFor();
  await chat.isIdle();
  await chat.switchTo("Live");
  await chat.accept("Hanako");
  await chat.shows(/The new balance is 950 USD/);
  await chat.isIdle();
  await chat.say("Send 50 dollars to Taro");
  await chat.approve.first().waitFor();
  await chat.isIdle();
  await chat.switchTo("Chat");
  await chat.accept("Taro");
  await chat.shows(/The new balance is 900 USD/);
});

visit("the names of the modes are explained", {}, async ({ chat }) => {
  const group = chat.page.getByRole("radiogroup", { name: "Mode" });
  await group.getByRole("radio", { name: "Chat", checked: true }).waitFor();
  await chat.page.getByTitle("ADK SSE").waitFor();
  await chat.page.getByTitle("ADK BIDI").waitFor();
});

visit("what is said to the open microphone is written down and answered aloud", { mode: "Live" }, async ({ chat }) => {
  await chat.button("Open microphone").click();
  await chat.questions.filter({ hasText: /speech of \d+ ms/ }).first().waitFor();
  await hearSomething(chat.page);
  await loud(chat, "Voice level of the agent");
  await chat.answers.filter({ hasText: /You spoke for \d+ ms/ }).first().waitFor();
  await chat.button("Close microphone").click();
  await hearNothing(chat.page);
});

for (const key of ["mouse", "keyboard"] as const) {
  visit(`what is said while the button is held is answered aloud, ${key}`, { mode: "Live" }, async ({ chat }) => {
    const talk = chat.button("Hold to talk");
    await (key === "mouse" ? talk.hover() : talk.focus());
    await (key === "mouse" ? chat.page.mouse.down() : chat.page.keyboard.down("Space"));
    await loud(chat, "Microphone level");
    await (key === "mouse" ? chat.page.mouse.up() : chat.page.keyboard.up("Space"));
    await chat.questions.filter({ hasText: /speech of \d+ ms/ }).first().waitFor();
    await hearSomething(chat.page);
    await chat.answers.filter({ hasText: /You spoke for/ }).first().waitFor();
    const order = await chat.log.getByRole("article").evaluateAll((nodes) => nodes.map((node) => node.ariaLabel));
    assert.deepEqual(order, ["You", "Agent"]);
  });
}

visit("what was not spoken when somebody interrupts is struck out", { mode: "Live" }, async ({ chat }) => {
  await chat.button("Hold to talk").hover();
  await chat.page.mouse.down();
  await loud(chat, "Microphone level");
  await quiet(chat, "Microphone level");
  await chat.page.mouse.up();
  await loud(chat, "Voice level of the agent");
  await chat.button("Interrupt").click();
  await chat.shows("Interrupted");
  await chat.answers.locator("del").first().waitFor();
  await hearNothing(chat.page);
});

visit("nothing is heard of a microphone that is not open", { mode: "Live" }, async ({ chat }) => {
  await chat.say("What is the weather in Tokyo?");
  await chat.shows(/The weather in Tokyo is/);
  await chat.isIdle();
  assert.equal(await chat.page.getByRole("meter", { name: "Microphone level" }).getAttribute("aria-valuenow"), "0");
  assert.equal(await chat.questions.count(), 1);
});

async function loud(chat: ChatPage, name: string): Promise<void> {
  await eventually(`${name} > 0`, async () => (await level(chat, name)) > 0);
}

async function quiet(chat: ChatPage, name: string): Promise<void> {
  await eventually(`${name} = 0`, async () => (await level(chat, name)) === 0);
}

async function level(chat: ChatPage, name: string): Promise<number> {
  return Number(await chat.page.getByRole("meter", { name }).getAttribute("aria-valuenow"));
}

visit("a lost connection is shown, and the answer goes on", { mode: "Live", isCuttable: true }, async ({ chat, cut }) => {
  const connection = chat.page.getByRole("status", { name: "Connection" });
  await chat.say("tell me a long story");
  await chat.shows(/Once upon a time/);
  const mend = cut();
  await connection.getByText(/Reconnecting/).waitFor();
  mend();
  await connection.getByText("Live").waitFor();
  await chat.shows(/On the second day/);
  assert.equal(await chat.answers.count(), 1);
  await chat.button("Stop").click();
  await chat.isIdle();
});
