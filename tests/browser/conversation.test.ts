/** Answers as they stream, and what can be done with them. */
import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { endWhileLoading, eventually, MODES, visit } from "./harness.ts";

/** One red point. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const STORY = "tell me a long story";
const BEGINNING = /Once upon a time a small boat/;
const FIRST_DAY = /On the first day/;

for (const mode of MODES) {
  visit(`stop ends a long answer, and the next turn comes at once, ${mode}`, { mode }, async ({ chat }) => {
    await chat.say(STORY);
    await chat.shows(BEGINNING);
    await (mode === "Chat" ? chat.button("Stop").click() : chat.page.keyboard.press("Escape"));
    await chat.isIdle();
    await chat.say("What is the weather in Tokyo?");
    await chat.shows(/The weather in Tokyo is/);
    assert.equal(await chat.log.getByText(/eighth day/).count(), 0);
    await chat.page.reload();
    await chat.shows(/The weather in Tokyo is/);
    assert.equal(await chat.log.getByText(/eighth day/).count(), 0, "the server has stopped as well");
  });

  visit(`a running answer goes on after a reload and in a second tab, ${mode}`, { mode }, async ({ chat, openTab }) => {
    await chat.say(STORY);
    await chat.shows(BEGINNING);
    await chat.page.reload();
    await chat.shows(FIRST_DAY);
    const other = await openTab();
    await other.shows(/On the second day/);
    await chat.shows(/On the second day/);
    assert.equal(await chat.answers.count(), 1);
    assert.equal(await other.answers.count(), 1);
    await other.button("Stop").click();
    await other.isIdle();
    await chat.isIdle();
  });

  visit(`an answer that ends while the page is loaded is shown, ${mode}`, { mode }, async ({ chat }) => {
    await chat.say(STORY);
    await chat.shows(BEGINNING);
    await endWhileLoading(chat.page);
    await chat.page.reload();
    await chat.shows(BEGINNING);
    await chat.isIdle();
    assert.equal(await chat.answers.count(), 1);
  });

  visit(`an image is attached, seen by the model and shown, ${mode}`, { agent: "parrot", mode }, async ({ chat }) => {
    const image = Buffer.from(PIXEL, "base64");
    await chat.page.locator("input[type=file]").setInputFiles({ name: "red.png", mimeType: "image/png", buffer: image });
    await chat.page.getByText("red.png").or(chat.page.getByAltText(/red\.png/)).first().waitFor();
    await chat.say("Look at this");
    await chat.shows("I see image/png.");
    await seesImage(chat.questions.first());
    await chat.page.reload();
    await seesImage(chat.questions.first());
  });
}

async function seesImage(message: Locator): Promise<void> {
  const image = message.locator("img").first();
  await image.waitFor();
  await eventually("the image is loaded", () => image.evaluate((node) => (node as HTMLImageElement).naturalWidth > 0));
}

visit("another answer to the same question takes back what the first one did", {}, async ({ chat }) => {
  await chat.say("Send 50 dollars to Hanako");
  await chat.accept("Hanako");
  await chat.shows(/The new balance is 950 USD/);
  await chat.isIdle();
  await chat.button("Regenerate").click();
  await chat.accept("Hanako");
  await chat.shows(/The new balance is 950 USD/);
  await chat.isIdle();
  assert.equal(await chat.answers.count(), 1);
  await chat.page.reload();
  await chat.shows(/The new balance is 950 USD/);
  assert.equal(await chat.questions.count(), 1);
  assert.equal(await chat.answers.count(), 1);
});

visit("an edited question is asked anew", {}, async ({ chat }) => {
  await chat.say("What is the weather in Tokyo?");
  await chat.shows(/The weather in Tokyo is/);
  await chat.isIdle();
  await chat.button("Edit").click();
  const editor = chat.questions.first().getByRole("textbox");
  await editor.fill("What is the weather in Oslo?");
  await editor.press("Enter");
  await chat.shows(/The weather in Oslo is/);
  await chat.isIdle();
  assert.equal(await chat.questions.count(), 1);
  assert.equal(await chat.log.getByText(/Tokyo/).count(), 0);
});

visit("an image of the agent's is shown", { agent: "parrot" }, async ({ chat }) => {
  await chat.say("draw");
  await seesImage(chat.answers.first());
  await chat.page.reload();
  await seesImage(chat.answers.first());
});

visit("a failed turn says so and can be tried again", { agent: "parrot" }, async ({ chat }) => {
  await chat.say("fail and then answer");
  await chat.page.getByRole("alert").first().waitFor();
  await chat.button("Retry").click();
  await chat.shows("Back in order.");
  await chat.page.getByRole("alert").first().waitFor({ state: "hidden" });
});

visit("without a server it says so, and goes on when it is back", { mayComplain: /Failed to load|ERR_/ }, async (visit) => {
  const { chat, context } = visit;
  await context.setOffline(true);
  await chat.say("What is the weather in Tokyo?");
  await chat.page.getByRole("alert").first().waitFor();
  await context.setOffline(false);
  await chat.button("Retry").click();
  await chat.shows(/The weather in Tokyo is/);
});

visit("who of several agents speaks is told", { agent: "parrot" }, async ({ chat }) => {
  await chat.say("hand over");
  await chat.shows("The librarian speaks.");
  await chat.answers.first().getByRole("group", { name: "Librarian" }).waitFor();
});

visit("Markdown is shown as such, and what is hostile in it does nothing", { agent: "parrot" }, async ({ chat }) => {
  const hostile = [
    "**bold** and `code`",
    "![spy](https://evil.example/pixel.png)",
    "![](//evil.example/pixel.png)",
    "<img src=https://evil.example/x onerror=alert(1)>",
    "<script>document.title = 'owned'</script>",
    "<iframe src=https://evil.example></iframe> <style>@import url(https://evil.example/a.css)</style>",
    "[click](javascript:document.title='owned') [data](data:text/html,<script>1</script>)",
    "[good](https://example.com/page) https://auto.example/x",
    "<svg onload=alert(1)><a xlink:href='javascript:alert(1)'>x</a></svg>",
    '| a |\n|---|\n| <b onmouseover=alert(1)>x</b> |\n\n```html\n<img src=https://evil.example/y>\n```\n\nThe end.',
  ].join("\n\n");
  await chat.say(hostile);
  const answer = chat.answers.first();
  await answer.getByText("The end.").waitFor();
  await chat.isIdle();
  await answer.locator("strong", { hasText: "bold" }).waitFor();
  await answer.locator("pre").first().waitFor();
  assert.equal(await answer.locator("img, script, iframe, style:not(svg style), [onerror], [onload]").count(), 0);
  const links = await answer.locator("a").evaluateAll((nodes) => nodes.map((node) => (node as HTMLAnchorElement).href));
  assert.ok(links.length >= 2);
  for (const link of links) assert.match(link, /^(https?|mailto):/);
  assert.doesNotMatch(await chat.page.title(), /owned/);
  await chat.button(/^Copy/).first().click();
});

visit("an answer is copied as it was written", { agent: "parrot" }, async ({ chat }) => {
  await chat.say("**bold** words");
  await chat.answers.first().getByText("bold").waitFor();
  await chat.isIdle();
  await chat.answers.first().hover();
  await chat.answers.first().getByRole("button", { name: /^Copy/ }).first().click();
  await eventually("the clipboard has it", async () => {
    return (await chat.page.evaluate(() => navigator.clipboard.readText())) === "**bold** words";
  });
});
