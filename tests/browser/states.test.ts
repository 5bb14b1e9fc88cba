/** The main states of the page: nothing wrong for axe in light and dark, nothing wider than a phone, and a picture. */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { axeViolations } from "./axe.ts";
import type { ChatPage } from "./chat-page.ts";
import { visit, type Setting, type Visit } from "./harness.ts";

interface State extends Setting {
  name: string;
  sizes?: Size[];
  /** May give the page of somebody else, which is looked at then. */
  reach(chat: ChatPage, visit: Visit): Promise<ChatPage | void>;
}

const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 375, height: 812 } };
type Size = keyof typeof SIZES;

const STATES: State[] = [
  { name: "empty", reach: async (chat) => chat.composer.waitFor() },
  {
    name: "approval",
    async reach(chat) {
      await chat.say("Pay Alice 30 dollars and Bob 40 dollars");
      await chat.approve.nth(1).waitFor();
      await chat.isIdle();
    },
  },
  {
    name: "denying",
    async reach(chat) {
      await chat.say("Send 50 dollars to Hanako");
      await chat.deny.first().click();
      await chat.log.getByRole("textbox", { name: /reason/i }).fill("Far too much");
    },
  },
  {
    name: "done",
    async reach(chat) {
      await chat.say("Send 50 dollars to Hanako");
      await chat.accept("Hanako");
      await chat.shows(/The new balance is 950 USD/);
      await chat.isIdle();
      await chat.say("Where am I?");
      await chat.decline("location");
      await chat.shows(/was denied/);
      await chat.isIdle();
    },
  },
  {
    name: "markdown",
    async reach(chat) {
      await chat.say("think, then say what you can do");
      await chat.shows(/I have thought it over/);
      await chat.isIdle();
      await chat.say("What can you do?");
      await chat.shows(/Try one of these/);
      await chat.isIdle();
    },
  },
  {
    name: "streaming",
    async reach(chat) {
      await chat.say("tell me a long story");
      await chat.shows(/On the first day/);
    },
  },
  {
    name: "error",
    agent: "parrot",
    async reach(chat) {
      await chat.say(`fail ${crypto.randomUUID()}`); // once for each
      await chat.page.getByRole("alert").first().waitFor();
    },
  },
  {
    name: "form",
    agent: "parrot",
    async reach(chat) {
      await chat.say("ask");
      await chat.shows("Which city?");
      await chat.isIdle();
    },
  },
  {
    name: "tool-form",
    agent: "parrot",
    async reach(chat) {
      await chat.say("measure north");
      await chat.shows("Measure a wall of the room.");
      await chat.isIdle();
      await chat.button("Answer").click(); // without what it needs
    },
  },
  {
    name: "parts",
    agent: "parrot",
    async reach(chat) {
      for (const words of ["draw", "consent", "hand over"]) {
        await chat.say(words);
        await chat.isAnswered(words);
      }
    },
  },
  {
    name: "expired",
    agent: "hurry",
    async reach(chat) {
      await chat.say("Send 50 dollars to Hanako");
      await chat.cards(/expired/i).first().waitFor();
    },
  },
  {
    name: "chats",
    sizes: ["phone"],
    async reach(chat) {
      await chat.say("Change BGM to track 2");
      await chat.shows("The background music is now track 2.");
      await chat.isIdle();
      await chat.button("Chats").click();
      await chat.page.getByRole("navigation", { name: "Chats" }).waitFor();
    },
  },
  {
    name: "chain",
    agent: "treasury",
    async reach(chat, { openAs }) {
      const recipient = `Kenji ${crypto.randomUUID().slice(0, 6)}`;
      await chat.say(`transfer 900 ${recipient}`);
      await chat.shows("waits for max");
      await chat.isIdle();
      const max = await openAs("max");
      await max.openInbox();
      await max.accept(recipient);
      const card = chat.cards(recipient).first();
      await card.getByText("waits for eva").waitFor();
      await card.locator("summary").first().click();
      await card.getByText("Audit trail").click();
      await card.getByText("max approved (link 1)").waitFor();
    },
  },
  {
    name: "card",
    agent: "treasury",
    async reach(chat) {
      await chat.say("transfer 900 me");
      await chat.approve.first().waitFor();
      await chat.isIdle();
    },
  },
  {
    name: "inbox",
    agent: "treasury",
    async reach(chat, { openAs }) {
      const [first, second] = [`Mika ${crypto.randomUUID().slice(0, 6)}`, `Aki ${crypto.randomUUID().slice(0, 6)}`];
      const max = await openAs("max");
      await max.openInbox();
      await chat.say(`transfer 900 ${first}`);
      await chat.shows("waits for max");
      await chat.isIdle();
      await max.entry(first).waitFor();
      await max.accept(first);
      await max.entry(first).getByText(/Now it waits for eva/).waitFor();
      await chat.say(`transfer 950 ${second}`);
      await max.entry(second).getByRole("button", { name: "Propose changes" }).click();
      return max;
    },
  },
  {
    name: "live",
    mode: "Live",
    async reach(chat) {
      await chat.button("Open microphone").click();
      await chat.answers.filter({ hasText: /You spoke for \d+ ms/ }).first().waitFor();
    },
  },
  {
    name: "inspector",
    async reach(chat) {
      await chat.say("Send 50 dollars to Hanako");
      await chat.approve.first().waitFor();
      await chat.isIdle();
      await chat.page.keyboard.press("Control+i");
      await chat.inspector.waitFor();
    },
  },
  {
    name: "trace",
    async reach(chat) {
      await chat.say("What is the weather in Tokyo?");
      await chat.shows(/The weather in Tokyo is/);
      await chat.isIdle();
      await chat.page.keyboard.press("Control+i");
      await chat.page.getByRole("tab", { name: "Trace" }).click();
    },
  },
  {
    name: "artifacts",
    agent: "parrot",
    async reach(chat) {
      for (const words of ["keep milk", "keep bread"]) {
        await chat.say(words);
        await chat.isAnswered(words);
      }
      await chat.page.keyboard.press("Control+i");
      await chat.page.getByRole("tab", { name: "Artifacts" }).click();
      await chat.inspector.getByText("Version 1, the newest").waitFor();
    },
  },
];

const BOTH: Size[] = ["desktop", "phone"];

for (const { name, reach, sizes = BOTH, ...setting } of STATES) {
  visit(name, { ...setting, viewport: SIZES[sizes[0]!] }, async (visited) => {
    const chat = (await reach(visited.chat, visited)) ?? visited.chat;
    for (const size of sizes) {
      await chat.page.setViewportSize(SIZES[size]);
      for (const colorScheme of ["light", "dark"] as const) {
        await useScheme(chat.page, colorScheme);
        assert.deepEqual(await axeViolations(chat.page), [], `${size}, ${colorScheme}`);
        const path = join(import.meta.dirname, "screenshots", `${name}-${size}-${colorScheme}.png`);
        await chat.page.screenshot({ path, animations: "disabled" });
      }
      await fitsWindow(chat);
    }
    if (name === "streaming") await chat.button("Stop").click();
  });
}

/** Chromium changes the colours some frames after it was told to, and not all of them at once. */
async function useScheme(page: Page, colorScheme: "light" | "dark"): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.evaluate(async (scheme) => {
    const colours = () => [...document.querySelectorAll("*")].map((element) => getComputedStyle(element).color).join();
    const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    while (!matchMedia(`(prefers-color-scheme: ${scheme})`).matches) await nextFrame();
    for (let before = "", now = colours(); now !== before; [before, now] = [now, colours()]) {
      await nextFrame();
      await nextFrame();
    }
  }, colorScheme);
}

/** Nothing scrolls sideways, and no button is where nobody can reach it. */
async function fitsWindow(chat: ChatPage): Promise<void> {
  const outside = await chat.page.evaluate(() => {
    const isOutside = (element: Element) => {
      const { left, right, width } = element.getBoundingClientRect();
      return width > 0 && (left < 0 || right > innerWidth);
    };
    const buttons = [...document.querySelectorAll("button, a, input, textarea, [role=tab]")].filter(isOutside);
    return { buttons: buttons.map((button) => button.outerHTML), width: document.documentElement.scrollWidth - innerWidth };
  });
  assert.deepEqual(outside, { buttons: [], width: 0 });
}
