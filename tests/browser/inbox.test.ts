/** Two users, one chain: approvers decide in their inboxes, and the owner's page moves by itself. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { axeViolations } from "./axe.ts";
import type { ChatPage } from "./chat-page.ts";
import { eventually, MODES, visit } from "./harness.ts";

/** Approvers see what waits in all chats: each test asks for somebody else. */
let number = 0;
const somebody = () => `Hanako${process.pid}x${++number}`;

for (const mode of MODES) {
  visit(`two users, one chain: the owner's page moves by itself, ${mode}`, { mode }, async ({ chat, openAs }) => {
    const hanako = somebody();
    await chat.say(`Send 600 dollars to ${hanako}`);
    const card = chat.cards(hanako).first();
    await card.getByText("Waits for others").waitFor();
    await card.getByText("waits for one of managers").waitFor();
    assert.equal(await chat.approve.count(), 0, "the owner is no approver");

    const max = await openAs("max");
    const eva = await openAs("eva");
    await eva.openInbox();
    assert.equal(await eva.entry(hanako).count(), 0, "it is not her turn");
    await max.openInbox();
    const asked = max.entry(hanako);
    for (const words of ["Large payment", "Severity: high", "600.00", "process_payment", "then eva"])
      await asked.getByText(words).first().waitFor();
    await max.accept(hanako);
    await asked.getByText("Recorded. Now it waits for eva.").waitFor();
    await card.getByText("max approved").waitFor();
    await card.getByText("waits for eva").waitFor();

    await eva.entry(hanako).waitFor(); // it came by itself
    await eva.accept(hanako);
    await eva.entry(hanako).getByText("Approved. The agent goes on.").waitFor();
    await chat.shows(new RegExp(`Paid 600 USD to ${hanako}\\. The new balance is 400 USD`));
    assert.equal(await chat.answers.count(), 1, "one message, however many segments it came in");
    await card.getByText("eva approved").waitFor();
    await openTrail(card);
    for (const line of ["asked one of managers, then eva", "max approved (link 1)", "eva approved (link 2)", "finished"])
      await card.getByText(line).waitFor();
    await chat.page.reload();
    await chat.cards(hanako).first().getByText("eva approved").waitFor();
  });

  visit(`a denial of an approver ends it, and says why, ${mode}`, { mode }, async ({ chat, openAs }) => {
    const hanako = somebody();
    await chat.say(`Send 700 dollars to ${hanako}`);
    await chat.shows("Waits for others");
    const max = await openAs("max");
    await max.openInbox();
    await max.entry(hanako).getByRole("button", { name: /^Deny/ }).click();
    await max.entry(hanako).getByRole("textbox", { name: /reason/i }).fill("Not this month");
    await max.page.keyboard.press("Enter");
    await max.entry(hanako).getByText("Denied. The agent is told.").waitFor();
    await chat.shows(/was denied/);
    const card = chat.cards(hanako).first();
    await card.getByText("max denied").waitFor();
    assert.match((await card.textContent()) ?? "", /Denied.*Not this month/s);
  });
}

async function openTrail(card: ReturnType<ChatPage["cards"]>): Promise<void> {
  await card.locator("summary").first().click();
  await card.getByText("Audit trail").click();
}

const CHANGING = { agent: "treasury", mayComplain: /status of 422/ } as const;
visit("what others change is asked for again, and reaches the tool", CHANGING, async ({ chat, openAs }) => {
  const hanako = somebody();
  await chat.say(`transfer 900 ${hanako}`);
  await chat.shows("waits for max");
  const max = await openAs("max");
  const eva = await openAs("eva");
  await max.openInbox();
  await eva.openInbox();
  await max.accept(hanako);
  await eva.entry(hanako).getByRole("button", { name: "Propose changes" }).click();
  const amount = eva.entry(hanako).getByRole("textbox", { name: "amount" });
  assert.equal(await amount.inputValue(), "900");
  await amount.fill("5000");
  await eva.accept(hanako);
  await eva.entry(hanako).getByText("The tool does not take these changes.").waitFor();
  await amount.fill("800");
  await eva.accept(hanako);
  await eva.entry(hanako).getByText("Recorded. Now it waits for max.").waitFor();
  await max.entry(hanako).getByText("Somebody has changed what is asked.").waitFor();
  assert.equal(await max.entry(hanako).getByRole("textbox", { name: "amount" }).inputValue(), "800");
  await max.accept(hanako);
  await max.entry(hanako).getByText("Approved. The agent goes on.").waitFor();
  await chat.shows(/I was told: .*"transferred": 800/);
});

visit(
  "a decision about what has changed meanwhile, or is gone, is refused in plain words",
  { agent: "treasury", mayComplain: /status of 40[49]/ },
  async ({ chat, openAs, url }) => {
    const [changed, gone] = [somebody(), somebody()];
    await chat.say(`transfer 900 ${changed}`);
    await chat.shows("waits for max");
    const max = await openAs("max");
    const api = inboxApi(max.page, url);
    await max.openInbox();
    await beforeNextDecision(max.page, async () => {
      await api.approve("max", changed);
      await api.approve("eva", changed, { amount: 300 });
    });
    await max.accept(changed);
    await max.entry(changed).getByText("What is asked has changed since you saw it.").waitFor();
    await max.entry(changed).getByText("Somebody has changed what is asked.").waitFor();

    await chat.say(`transfer 800 ${gone}`);
    await max.entry(gone).waitFor();
    await beforeNextDecision(max.page, async () => {
      await chat.page.request.delete(`${url}api/chat/${new URL(chat.page.url()).hash.slice(1)}`);
    });
    await max.accept(gone);
    await max.entry(gone).getByText("This does not wait for you any more").first().waitFor();
    assert.equal(await max.approve.count(), 0);
  },
);

async function beforeNextDecision(page: Page, happens: () => Promise<void>): Promise<void> {
  await page.route(
    "**/approvals/*",
    async (route) => {
      await happens();
      await route.continue();
    },
    { times: 1 },
  );
}

function inboxApi(page: Page, url: string) {
  const ask = async (user: string, path: string, data?: object) => {
    const options = { method: data === undefined ? "GET" : "POST", headers: { "x-demo-user": user }, data };
    return (await page.request.fetch(`${url}api/chat/approvals${path}`, options)).json();
  };
  return {
    async approve(user: string, recipient: string, payload?: object): Promise<void> {
      const { approvals } = await ask(user, "");
      const isWanted = (entry: { arguments: { recipient: string } }) => entry.arguments.recipient === recipient;
      const { id, digest } = approvals.find(isWanted);
      await ask(user, `/${id}`, { approved: true, digest, ...(payload && { payload }) });
    },
  };
}

visit("the inbox with the keyboard alone, on a phone, with nothing hidden", { agent: "treasury" }, async ({ chat, openAs }) => {
  const hanako = `${somebody()}\u202eonakah`;
  await chat.say(`transfer 900 ${hanako}`);
  await chat.shows("waits for max");
  const max = await openAs("max");
  await max.page.setViewportSize({ width: 375, height: 812 });
  await max.button("Chats").click();
  await max.openInbox();
  const entry = max.entry("U+202E");
  await entry.getByText("Contains invisible characters").waitFor();
  assert.doesNotMatch(await entry.innerText(), /\u202e/);
  assert.deepEqual(await axeViolations(max.page), []);
  await eventually("the card of the newest has the focus", async () => {
    await max.page.keyboard.press("Alt+r");
    return entry.getByRole("group").first().evaluate((node) => node.contains(document.activeElement));
  });
  await max.page.keyboard.press("d");
  await max.page.keyboard.type("No");
  await max.page.keyboard.press("Enter");
  await entry.getByText("Denied. The agent is told.").waitFor();
  await chat.shows(/I was told: .*Reason: No/);
});

visit("the owner's own approvals have their cards, in the chat and in the inbox", { agent: "treasury" }, async ({ chat }) => {
  await chat.say("transfer 900 me");
  const card = chat.cards("needs your go-ahead").first();
  for (const words of ["Transfer", "This leaves the house.", "900.00", "Dec 24, 2026", "DE02 1203", "bank.example"])
    await card.getByText(words).first().waitFor();
  await chat.openInbox();
  await chat.accept("me");
  await chat.entry("Transfer").getByText("Approved. The agent goes on.").waitFor();
  await chat.page.getByRole("navigation", { name: "Chats" }).getByText("transfer 900 me").click();
  await chat.shows(/I was told: .*"transferred": 900/);
});
