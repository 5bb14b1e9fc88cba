/** How the page comes to the browser. */
import assert from "node:assert/strict";
import { axeViolations } from "./axe.ts";
import { addressOf, MODES, visit } from "./harness.ts";

visit("the policy is strict, and is kept", { mayComplain: /script-src|CSP:/ }, async ({ chat, url }) => {
  const response = await chat.page.request.get(url);
  const policy = response.headers()["content-security-policy"] ?? "";
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /script-src 'self'(;|$)/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|\*/);
  // The watch of every test has teeth: a script in the page is not run, and told.
  const isTold = chat.page.waitForEvent("console", (message) => message.text().startsWith("CSP:"));
  await chat.page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'owned'";
    document.body.append(script);
  });
  await isTold;
  assert.doesNotMatch(await chat.page.title(), /owned/);
});

for (const mode of MODES) {
  visit(`the page works below a path, ${mode}`, { agent: "hurry", mode }, async ({ chat }) => {
    assert.match(new URL(chat.page.url()).pathname, /^\/hurry\/$/);
    await chat.say("What is the weather in Tokyo?");
    await chat.shows(/The weather in Tokyo is/);
    await chat.page.reload();
    await chat.shows(/The weather in Tokyo is/);
    await chat.page.getByRole("navigation", { name: "Chats" }).getByText("What is the weather in Tokyo?").waitFor();
  });
}

for (const mode of MODES) {
  visit(`one of several agents is chosen, and each has its own chats, ${mode}`, { agent: "several" }, async ({ chat }) => {
    const { page } = chat;
    const choice = page.getByRole("combobox", { name: "Agent" });
    const chats = page.getByRole("navigation", { name: "Chats" });
    assert.equal(await choice.inputValue(), "hurry");
    if (mode === "Live") await chat.switchTo("Live");
    await chat.say("What is the weather in Tokyo?");
    await chat.shows(/The weather in Tokyo is/);
    await chats.getByText("What is the weather in Tokyo?").waitFor();
    assert.deepEqual(await axeViolations(page), []);
    await choice.selectOption("parrot");
    await page.waitForURL(/\/several\/\?agent=parrot$/);
    await page.getByText("Talk to parrot").waitFor();
    await chats.getByText("Your chats will appear here.").waitFor();
    await page.goBack();
    await chat.shows(/The weather in Tokyo is/);
  });
}

visit("the two users of two browsers see nothing of each other", {}, async ({ chat, context }) => {
  await chat.say("What is the weather in Tokyo?");
  await chat.shows(/The weather in Tokyo is/);
  const stranger = await context.browser()!.newContext();
  const page = await stranger.newPage();
  await page.goto(addressOf("demo"));
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  assert.deepEqual(await (await page.request.get(`${addressOf("demo")}api/chat`)).json(), []);
  await stranger.close();
});

visit("light or dark is the person's choice, and is remembered", { colorScheme: "light" }, async ({ chat }) => {
  const background = () => chat.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await chat.button("Use the dark theme").click();
  const dark = await background();
  assert.notEqual(dark, light);
  await chat.page.reload();
  await chat.button("Use the light theme").waitFor();
  assert.equal(await background(), dark);
});
