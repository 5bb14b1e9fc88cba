/** What a person may rely on when something waits for a decision. */
import assert from "node:assert/strict";
import { axeViolations } from "./axe.ts";
import { eventually, MODES, visit } from "./harness.ts";

const PAYMENT = "Send 50 dollars to Hanako";

visit("the reason of a denial is shown, and the model is told", { agent: "parrot" }, async ({ chat }) => {
  await chat.say("pay");
  await chat.decline("Hanako", "Far too much");
  await chat.shows(/I was told: .*the user denied it\. Reason: Far too much/);
  assert.match((await chat.cards("Hanako").first().textContent()) ?? "", /denied.*Far too much/is);
  await chat.page.reload();
  await chat.shows(/I was told: .*Far too much/);
  assert.match((await chat.cards("Hanako").first().textContent()) ?? "", /denied.*Far too much/is);
});

visit("the card says in words what will happen", {}, async ({ chat }) => {
  await chat.say(PAYMENT);
  await chat.approve.first().waitFor();
  const card = (await chat.cards("Hanako").first().innerText()).replaceAll(/\s+/g, " ");
  for (const word of ["payment", "50", "USD", "Hanako"]) assert.match(card, new RegExp(word, "i"));
  assert.match(card, /\d+:\d\d|\d+ min/, "a deadline that counts down");
});

for (const mode of MODES) {
  visit(`a pending approval is there after a reload, ${mode}`, { mode }, async ({ chat }) => {
    await chat.say(PAYMENT);
    await chat.approve.first().waitFor();
    await chat.page.reload();
    await chat.accept("Hanako");
    await chat.shows(/Paid 50 USD to Hanako\. The new balance is 950 USD/);
    assert.equal(await chat.answers.count(), 1);
  });

  visit(`two tabs decide at once: one payment, and both are told, ${mode}`, { mode }, async ({ chat, openTab }) => {
    await chat.say(PAYMENT);
    await chat.approve.first().waitFor();
    await chat.isIdle();
    const other = await openTab();
    await other.switchTo(mode);
    const buttons = await Promise.all([chat, other].map((tab) => tab.approve.first().elementHandle()));
    await Promise.all(buttons.map((button) => button!.evaluate((node) => (node as HTMLElement).click())));
    for (const tab of [chat, other]) {
      await tab.shows(/The new balance is 950 USD/);
      await tab.isIdle();
      assert.equal(await tab.answers.count(), 1);
    }
    await other.say("Send 1 dollar to Zoe");
    await other.accept("Zoe");
    await other.shows(/The new balance is 949 USD/);
  });

  visit(`what another tab decided appears by itself, ${mode}`, { mode }, async ({ chat, openTab }) => {
    await chat.say(PAYMENT);
    await chat.approve.first().waitFor();
    await chat.isIdle();
    const other = await openTab();
    await other.decline("Hanako");
    await other.shows(/was denied/);
    await chat.shows(/was denied/);
    assert.equal(await chat.approve.count(), 0);
  });
}

visit("an approval that nobody gives in time expires, Chat", { agent: "hurry" }, async ({ chat }) => {
  await chat.say(PAYMENT);
  await chat.approve.first().waitFor();
  await chat.cards(/expired/i).first().waitFor();
  assert.equal(await chat.approve.count(), 0, "it can be approved no more");
  await chat.button("Tell the agent").click();
  await chat.shows(/The payment of 50 USD to Hanako has expired/);
  await chat.isIdle();
  await chat.say("Send 1 dollar to Zoe");
  await chat.accept("Zoe");
  await chat.shows(/The new balance is 999 USD/);
});

visit("an approval that nobody gives in time expires, Live", { agent: "hurry", mode: "Live" }, async ({ chat }) => {
  await chat.say(PAYMENT);
  await chat.approve.first().waitFor();
  await chat.shows(/The payment of 50 USD to Hanako has expired/);
  assert.equal(await chat.approve.count(), 0, "it can be approved no more");
});

visit("what is typed decides nothing", {}, async ({ chat }) => {
  await chat.say(PAYMENT);
  await chat.approve.first().waitFor();
  await chat.isIdle();
  const focused = await chat.page.evaluate(() => document.activeElement?.textContent ?? "");
  assert.doesNotMatch(focused, /Approve/, "nothing takes the focus by itself");
  await chat.composer.focus();
  await chat.page.keyboard.type("a d");
  assert.equal(await chat.composer.inputValue(), "a d");
  await chat.page.locator("h1").first().click();
  await chat.page.keyboard.type("ad");
  await chat.page.keyboard.press("Enter");
  assert.equal(await chat.approve.count(), 1, "still pending");
  const [{ waiting }] = await chats(chat.page.url());
  assert.ok(waiting);

  async function chats(url: string): Promise<[{ waiting: unknown }]> {
    return (await chat.page.request.get(new URL("api/chat", url).href)).json();
  }
});

visit("a whole turn with the keyboard alone", {}, async ({ chat }) => {
  const { keyboard } = chat.page;
  await keyboard.press("Tab"); // away from where one writes, which a new chat begins with
  await keyboard.press("/");
  await keyboard.type("Pay Alice 30 dollars and Bob 40 dollars");
  await keyboard.press("Enter");
  await chat.approve.nth(1).waitFor();
  await chat.isIdle();
  await chat.page.getByText(/2 actions wait/).waitFor();
  await keyboard.press("Alt+r");
  await reach(/^Approve .*Alice/);
  await keyboard.press("Enter");
  await eventually("one of them is answered", async () => (await chat.approve.count()) === 1);
  await chat.page.getByText(/1 action waits/).waitFor();
  await keyboard.press("Alt+r");
  await keyboard.press("d");
  await reach(/^Deny .*Bob/);
  await keyboard.press("Enter");
  await chat.shows(/The new balance is 970 USD\. The payment of 40 USD to Bob was denied/);

  /** Goes on with the Tab key until such a button has the focus. */
  async function reach(name: RegExp): Promise<void> {
    const wanted = chat.page.getByRole("button", { name }).and(chat.page.locator(":focus"));
    for (let steps = 0; (await wanted.count()) === 0; steps++) {
      assert.ok(steps < 12, `The Tab key does not come to ${name}`);
      await keyboard.press("Tab");
    }
  }
});

visit("one may write on while something waits, and decide later", {}, async ({ chat }) => {
  await chat.say(PAYMENT);
  await chat.approve.first().waitFor();
  await chat.isIdle();
  await chat.say("What is the weather in Tokyo?");
  await chat.shows(/The weather in Tokyo is/);
  await chat.isIdle();
  await chat.accept("Hanako");
  await chat.answers.first().getByText(/The new balance is 950 USD/).waitFor();
  assert.equal(await chat.answers.count(), 2);
});

visit("what a tool proposes may be changed before it is approved", { agent: "parrot" }, async ({ chat }) => {
  await chat.say("book");
  await chat.shows("Is this seat right?");
  const proposal = chat.cards("Is this seat right?").getByRole("textbox");
  await proposal.fill('{"seat": ');
  await chat.shows("This is not JSON yet.");
  assert.equal(await chat.approve.count(), 0);
  await proposal.fill('{"seat": "2B"}');
  await chat.accept();
  await chat.shows(/I was told: .*"booked": \{"seat": "2B"\}/);
});

visit("characters that are not seen are marked where a person decides", { agent: "parrot" }, async ({ chat }) => {
  await chat.say("order pens\u202eefink\u200b 👩‍👧");
  await chat.approve.first().waitFor();
  const card = chat.cards("needs your go-ahead").first();
  await card.getByText("Contains invisible characters").waitFor();
  const shown = await card.innerText();
  assert.doesNotMatch(shown, /[\u202e\u200b]/);
  const marked = "pensU\\+202EefinkU\\+200B 👩‍👧";
  assert.match(shown, new RegExp(`Order ${marked} for you\\?`), "the hint");
  assert.match(shown, new RegExp(`item\\s+${marked}`), "the argument");
  assert.equal(await card.getByRole("img", { name: "invisible character U+202E" }).count(), 2);
  assert.deepEqual(await axeViolations(chat.page), []);
  await chat.accept();
  await chat.shows(/I was told: .*"ordered": "pens\\u202eefink\\u200b/);
});

visit("a question of the agent's is a form", { agent: "parrot" }, async ({ chat }) => {
  await chat.say("ask");
  await chat.shows("Which city?");
  await chat.page.reload();
  const form = chat.cards("Which city?").first();
  await form.getByRole("textbox").first().fill("Oslo");
  await form.getByRole("textbox").first().press("Enter");
  await chat.shows(/I was told: .*Oslo/);
});

visit("a tool that needs consent offers the page that gives it", { agent: "parrot" }, async ({ chat }) => {
  await chat.say("consent");
  const link = chat.log.locator("a[href^='https://id.example/consent']");
  await link.waitFor();
  assert.match((await link.getAttribute("rel")) ?? "", /noopener/);
});
