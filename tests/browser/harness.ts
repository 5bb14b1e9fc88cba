/** A test is a user of its own with a browser of its own, and fails on whatever the browser complains about. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { ChatPage } from "./chat-page.ts";
import { launch } from "./chromium.ts";
import { listenToLoudspeaker } from "./loudspeaker.ts";
import { startProxy } from "./proxy.ts";

export type Mode = "Chat" | "Live";
export const MODES: Mode[] = ["Chat", "Live"];

/** The demo, or an agent of `agents.py`. */
type Agent = "chat-only" | "demo" | "hurry" | "librarian" | "parrot" | "several" | "treasury";

export interface Setting extends BrowserContextOptions {
  agent?: Agent;
  mode?: Mode;
  /** The connections to the server can be cut. */
  isCuttable?: boolean;
  /** What the browser may complain about because the test asks for it. */
  mayComplain?: RegExp;
}

export interface Visit {
  /** The first tab, with the page open in it. */
  chat: ChatPage;
  context: BrowserContext;
  url: string;
  /** Ends all connections and allows no new ones, until the function that it returns is called. */
  cut(): () => void;
  /** Another tab of the same user; at the address of the first one if none is given. */
  openTab(url?: string): Promise<ChatPage>;
  /** Another user, in a browser of his own: one of the people of the demo's policy. */
  openAs(user: string): Promise<ChatPage>;
}

const TIMEOUT_MS = 15_000;
export const TOKYO = { latitude: 35.6812, longitude: 139.7671 };

let browser: Promise<Browser> | undefined;
after(async () => (await browser)?.close());

export function visit(name: string, setting: Setting, body: (visit: Visit) => Promise<void>): void {
  test(name, async () => {
    const { agent = "demo", mode = "Chat", isCuttable = false, mayComplain, ...options } = setting;
    browser ??= launch();
    const launched = await browser;
    const settings: BrowserContextOptions = {
      permissions: ["geolocation", "microphone", "clipboard-read", "clipboard-write"],
      geolocation: TOKYO,
      reducedMotion: "reduce",
      locale: "en-US",
      timezoneId: "UTC",
      viewport: { width: 1440, height: 900 },
      ...options,
    };
    const proxy = isCuttable ? await startProxy(addressOf(agent)) : undefined;
    const url = proxy?.url ?? addressOf(agent);
    const cut = () => {
      assert.ok(proxy, "not cuttable");
      return proxy.cut();
    };
    const complaints: string[] = [];
    const contexts: BrowserContext[] = [];
    const newContext = async () => {
      const context = await launched.newContext(settings);
      contexts.push(context);
      context.setDefaultTimeout(TIMEOUT_MS);
      watch(context, new URL(url).host, complaints);
      await context.addInitScript(listenToLoudspeaker);
      return context;
    };
    const openTab = async (context: BrowserContext, at: string) => {
      const chat = new ChatPage(await context.newPage());
      await chat.page.goto(at);
      await chat.composer.waitFor();
      return chat;
    };
    try {
      const context = await newContext();
      const chat = await openTab(context, url);
      if (mode === "Live") await chat.switchTo("Live");
      const openAs = async (user: string) => openTab(await newContext(), `${url}?user=${user}`);
      await body({ chat, context, url, cut, openTab: (at) => openTab(context, at ?? chat.page.url()), openAs });
      const unexpected = complaints.filter((complaint) => !mayComplain?.test(complaint));
      assert.deepEqual(unexpected, [], "the browser complained");
    } catch (error) {
      const pages = contexts.flatMap((context) => context.pages());
      await Promise.all(pages.map((page, index) => keep(page, `${name} ${index}`)));
      if (complaints.length > 0 && error instanceof Error) error.message += `\nThe browser said: ${complaints.join("\n")}`;
      throw error;
    } finally {
      await Promise.all(contexts.map((context) => context.close()));
      proxy?.stop();
    }
  });
}

export function addressOf(agent: Agent): string {
  const { DEMO, AGENTS } = process.env;
  assert.ok(DEMO && AGENTS, "setup.ts starts the servers: npm test, or npm test -- one.test.ts");
  return agent === "demo" ? DEMO : `${AGENTS}/${agent}/`;
}

/** Until it holds; for conditions that no locator can wait for. */
export async function eventually<T>(what: string, probe: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = Date.now() + TIMEOUT_MS;
  for (;;) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`In vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** From now on the answer of the chat ends when the server has read the history, and before the page has it. */
export async function endWhileLoading(page: Page): Promise<void> {
  await page.route("**/messages", async (route) => {
    const response = await route.fetch();
    await page.request.post(route.request().url().replace(/messages$/, "stop"));
    await route.fulfill({ response });
  });
}

/** `complaints`: filled as the pages of the context go on. */
function watch(context: BrowserContext, host: string, complaints: string[]): void {
  context.on("console", (message) => {
    if (["error", "warning", "assert"].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  context.on("weberror", (error) => complaints.push(`exception: ${error.error().stack}`));
  context.on("request", (request) => {
    const { protocol, host: asked } = new URL(request.url());
    if (!["data:", "blob:"].includes(protocol) && asked !== host) complaints.push(`request: ${request.url()}`);
  });
  context.on("page", (page) => {
    page.on("crash", () => complaints.push("crash"));
    page.on("websocket", (socket) => {
      if (new URL(socket.url()).host !== host) complaints.push(`socket: ${socket.url()}`);
    });
  });
  // Chromium reports to the console what its policy forbids, but not from everywhere.
  void context.addInitScript(() =>
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`),
    ),
  );
}

async function keep(page: Page, name: string): Promise<void> {
  const file = `${name.replaceAll(/[^\w]+/g, "-")}.png`;
  await page.screenshot({ path: join(import.meta.dirname, "failures", file) }).catch(() => {});
}
