/** The how-to pages for other clients: their files with the real packages, in a real browser, against the demo. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { bundle, filesOf } from "./bundling.ts";
import { launch } from "./chromium.ts";
import { addressOf } from "./harness.ts";

const TIMEOUT_MS = 15_000;

interface Client {
  /** The element that the page fills. */
  root: string;
  entry: string;
  /** What has to be imported first. */
  before?: string;
  ways: ("HTTP" | "live")[];
}

const CLIENTS: Record<string, Client> = {
  // examples.test.ts has Vue in live sessions.
  vue: { root: `<div id="app"></div>`, entry: "src/main.ts", ways: ["HTTP"] },
  svelte: { root: `<div id="app"></div>`, entry: "src/main.ts", ways: ["HTTP", "live"] },
  // `ng build` compiles the templates; here the browser does.
  angular: { root: "<app-root></app-root>", entry: "src/main.ts", before: "@angular/compiler", ways: ["HTTP", "live"] },
  "assistant-ui": { root: `<div id="root"></div>`, entry: "src/main.tsx", ways: ["HTTP", "live"] },
};

let browser: Browser;
before(async () => {
  // Pages that the test itself serves are of no network, and Chromium would keep them off the local one.
  browser = await launch("--disable-features=LocalNetworkAccessChecks");
});
after(() => browser?.close());

for (const [name, { root, entry, before, ways }] of Object.entries(CLIENTS)) {
  for (const way of ways) {
    test(`${name}: streams, asks, runs the browser's tool, comes back after a reload, and stops, ${way}`, async () => {
      const files = await filesOf(`docs/howto/${name}.md`);
      if (way === "live") files["src/chat.ts"] = live(files["src/chat.ts"]!);
      const script = await bundle(files, entry, before);
      const html = `<!doctype html><link rel="icon" href="data:,">${root}<script type="module" src="${name}.js"></script>`;
      await visit(name, { "": ["text/html", html], ".js": ["text/javascript; charset=utf-8", script] }, async (page) => {
        await converse(page, way);
        if (name === "assistant-ui" && way === "HTTP") await writeOn(page);
      });
    });
  }
}

/** Opens the page at an address of the demo's own origin, where its API is. `served`: by the end of the address. */
async function visit(
  name: string,
  served: Record<string, [contentType: string, body: string]>,
  body: (page: Page) => Promise<void>,
): Promise<void> {
  const context = await browser.newContext();
  context.setDefaultTimeout(TIMEOUT_MS);
  const complaints: string[] = [];
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  context.on("weberror", (error) => complaints.push(String(error.error().stack)));
  const address = `${addressOf("demo")}${name}`;
  for (const [end, [contentType, body]] of Object.entries(served)) {
    await context.route(address + end, (route) => route.fulfill({ contentType, body }));
  }
  try {
    const page = await context.newPage();
    await page.goto(address);
    await body(page);
    assert.deepEqual(complaints, [], "the browser complained");
  } catch (error) {
    throw new Error(`The browser said: ${complaints.join("\n") || "nothing"}`, { cause: error });
  } finally {
    await context.close();
  }
}

/** With the two lines that the pages name. */
function live(code: string): string {
  const [start, rest] = code.split('transport: new DefaultChatTransport({ api: "/api/chat" }),');
  assert.ok(start && rest);
  return `import { bindChat, LiveChatTransport } from "adk-stream-client";
    const transport = new LiveChatTransport({ url: "/api/chat/live" });
    ${start} transport, ${rest}
    bindChat(chat, transport);`;
}

async function converse(page: Page, way: string): Promise<void> {
  const posts: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST") posts.push(new URL(request.url()).pathname.replace(/^\/api\/chat\/?[^/]*/, ""));
  });
  await say(page, "Send 50 dollars to Hanako");
  await page.getByText(/process_payment \{"amount":50,"recipient":"Hanako"/).waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  await shows(page, /^assistant: .*Paid 50 USD to Hanako\. The new balance is 950 USD/);
  await say(page, "Send 60 dollars to Taro");
  await page.getByRole("button", { name: "Deny" }).click();
  await shows(page, /^assistant: .*The payment of 60 USD to Taro was denied/);
  await say(page, "Change BGM to track 2");
  await shows(page, /^assistant: .*The background music is now track 2/);
  assert.equal(await page.title(), "Track 2");
  const expected = way === "HTTP" ? ["", "", "", "", "", ""] : [];
  assert.deepEqual(posts, expected, "each turn is posted, and each answer once");

  await say(page, "Send 70 dollars to Jiro");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Approve" }).click();
  await shows(page, /^assistant: .*Paid 70 USD to Jiro\. The new balance is 880 USD/);

  await say(page, "tell me a long story");
  await shows(page, /^assistant: .*Once upon a time/); // and it goes on
  const stopped = page.waitForResponse(/\/stop$/);
  await page.getByRole("button", { name: "Stop" }).click();
  await stopped;
  assert.equal(await runningIn(page), null, "the run goes on");
  await say(page, "What is the weather in Tokyo?");
  await shows(page, /^assistant: .*The weather in Tokyo is/);
  assert.equal(await page.getByText(/^(user|assistant): /).count(), 12, "a question and an answer each");
}

/** The other pages do not let the user write while a question is open. */
async function writeOn(page: Page): Promise<void> {
  await say(page, "Send 80 dollars to Saburo");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await say(page, "What is the weather in Oslo?");
  await shows(page, /^assistant: .*The weather in Oslo is/);
  await page.getByRole("button", { name: "Approve" }).waitFor(); // as on the server, where it is still open
}

/** The answer that the server is still writing. */
function runningIn(page: Page): Promise<string | null> {
  return page.evaluate(async () => {
    const response = await fetch(`/api/chat/${location.hash.slice(1)}/messages`);
    return response.headers.get("x-adk-running");
  });
}

async function say(page: Page, words: string): Promise<void> {
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "hidden" });
  await page.getByRole("textbox", { name: "Message" }).fill(words);
  await page.getByRole("textbox", { name: "Message" }).press("Enter");
  await shows(page, `user: ${words}`);
}

async function shows(page: Page, words: string | RegExp): Promise<void> {
  await page.getByText(/^(user|assistant): /).filter({ hasText: words }).waitFor();
}
