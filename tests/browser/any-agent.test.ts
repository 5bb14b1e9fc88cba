/** The page with an agent that it knows nothing about. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { axeViolations } from "./axe.ts";
import { MODES, visit } from "./harness.ts";

for (const mode of MODES) {
  visit(`a browser tool that the page does not know is answered by a person, ${mode}`, { agent: "parrot", mode }, async ({ chat }) => {
    const tools = chat.page.getByRole("region", { name: "Runs in this browser" });
    assert.deepEqual(await tools.getByRole("listitem").allTextContents(), ["measure_roomasks you"]);
    await chat.say("measure north");
    const form = chat.cards("Measure a wall of the room.").first();
    await form.getByText("north").waitFor();
    await chat.page.getByText("1 action waits for your answer").waitFor();
    await chat.isIdle();
    await form.getByRole("button", { name: "Answer" }).click();
    await form.getByText("This must be a number.").waitFor();
    await form.getByRole("textbox", { name: "Metres" }).fill("4.5");
    await form.getByRole("combobox", { name: "Material" }).selectOption("wood");
    await form.getByRole("button", { name: "Answer" }).click();
    await chat.shows('I was told: {"metres": 4.5, "material": "wood"}');
    await chat.isIdle();
    await chat.say("measure attic"); // which a person has to approve first
    await chat.accept("attic");
    await chat.button("Decline").click();
    await chat.shows(/I was told: .*declined to answer/);
  });
}

visit("each of several agents has its own browser tools", { agent: "several" }, async ({ chat }) => {
  const tools = chat.page.getByRole("region", { name: "Runs in this browser" }).getByRole("listitem");
  assert.deepEqual((await tools.allTextContents()).map((text) => text.split(/asks|allowed/)[0]), ["change_bgm", "get_location"]);
  await chat.page.goto(`${chat.page.url()}?agent=parrot`);
  await tools.getByText("measure_room").waitFor();
  assert.equal(await tools.count(), 1);
});

visit("approvals by keys right after sending, before the card is there", {}, async ({ chat }) => {
  await chat.say("Send 50 dollars to Hanako");
  await chat.page.keyboard.press("Alt+r");
  await chat.log.locator("[role=group]:focus").waitFor();
  await chat.page.keyboard.press("a");
  await chat.shows(/The new balance is 950 USD/);
});

for (const agent of ["librarian", "chat-only"] as const) {
  visit(`a model without live mode says so, and a chat takes over: ${agent}`, { agent, mode: "Live" }, async ({ chat }) => {
    await chat.say("Hello");
    await chat.log.getByRole("alert").getByText(/has no live mode/).waitFor();
    await chat.button("Retry").waitFor({ state: "detached" });
    await chat.switchTo("Chat");
    await chat.button("Retry").click();
    await chat.shows("The librarian speaks.");
  });
}

for (const mode of MODES) {
  visit(`a new chat asks for nothing that is not there, ${mode}`, {}, async ({ chat, context }) => {
    const refused: string[] = [];
    context.on("response", (response) => {
      if (response.status() >= 400) refused.push(`${response.status()} ${response.url()}`);
    });
    await chat.page.reload();
    await chat.composer.waitFor();
    await chat.page.waitForLoadState("networkidle");
    await chat.say("What is the weather in Tokyo?");
    await chat.shows(/The weather in Tokyo is/);
    await chat.isIdle();
    await chat.button("New chat").click();
    await chat.page.waitForLoadState("networkidle");
    assert.deepEqual(refused, []);
  });
}

visit("state, artifacts and the trace of a turn are in the inspector", { agent: "parrot" }, async ({ chat }) => {
  const { page, inspector } = chat;
  const open = (name: string) => page.getByRole("tab", { name }).click();
  await page.keyboard.press("Control+i");
  await open("State");
  await inspector.getByText("No state was sent to this page.").waitFor();
  for (const words of ["keep milk", "keep bread"]) {
    await chat.say(words);
    await chat.isAnswered(words);
  }
  await inspector.getByText(/"milk",\s+"bread"/).waitFor();
  assert.equal(await page.getByText("not for pages").count(), 0);
  assert.deepEqual(await axeViolations(page), []);
  await open("Artifacts");
  const [download] = await Promise.all([page.waitForEvent("download"), inspector.getByRole("link").first().click()]);
  assert.equal(await readFile(await download.path(), "utf8"), "bread");
  await open("Trace");
  const steps = inspector.getByRole("region", { name: /^Step/ });
  assert.match((await steps.first().textContent()) ?? "", /keep.*completed.*\d ms/);
  assert.match((await steps.last().textContent()) ?? "", /I was told/);
  await steps.first().getByRole("button", { name: /keep/ }).click();
  await inspector.getByText(/chunks of/).waitFor();
  await page.reload();
  await open("Trace");
  await inspector.getByText("no times of turns from before").waitFor();
  await open("State");
  await inspector.getByText(/"milk",\s+"bread"/).waitFor();
});

visit("Escape closes the menu of exports, and does not stop the answer", {}, async ({ chat }) => {
  await chat.say("tell me a long story");
  await chat.shows(/On the first day/);
  await chat.button("Export").click();
  await chat.page.keyboard.press("Escape");
  await chat.button("Save as JSON").waitFor({ state: "hidden" });
  await chat.isAnswering();
  await chat.page.keyboard.press("Escape");
  await chat.isIdle();
});

visit("a conversation is exported as Markdown and as JSON", {}, async ({ chat }) => {
  const { page } = chat;
  assert.ok(await chat.button("Export").isDisabled());
  await chat.say("Send 50 dollars to Hanako");
  await chat.accept("Hanako");
  await chat.shows(/The new balance is 950 USD/);
  await chat.isIdle();
  const save = async (format: string) => {
    await chat.button("Export").click();
    if (format === "JSON") {
      assert.deepEqual(await axeViolations(page), []);
      await page.screenshot({ path: join(import.meta.dirname, "screenshots", "export.png") });
    }
    const [download] = await Promise.all([page.waitForEvent("download"), chat.button(`Save as ${format}`).click()]);
    return { name: download.suggestedFilename(), text: await readFile(await download.path(), "utf8") };
  };
  const markdown = await save("Markdown");
  assert.match(markdown.name, /^chat-.*\.md$/);
  assert.match(markdown.text, /## You\n\nSend 50 dollars to Hanako\n\n## demo_agent\n/);
  assert.match(markdown.text, /\*\*process\\_payment\*\* \(output-available, approved\)[^]*The new balance is 950 USD/);
  const json = JSON.parse((await save("JSON")).text) as { role: string }[];
  assert.deepEqual(json.map(({ role }) => role), ["user", "assistant"]);
});
