/** The how-to pages for other clients: their files with the real packages, in a real browser, against the demo. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { bundle, filesOf } from "./bundling.ts";
import { launch } from "./chromium.ts";
import { addressOf, TOKYO } from "./harness.ts";

const TIMEOUT_MS = 15_000;

/** The root element of each page, its first file, and what has to be imported before it. */
const CLIENTS = {
  vue: { root: `<div id="app"></div>`, entry: "src/main.ts" },
  svelte: { root: `<div id="app"></div>`, entry: "src/main.ts" },
  // `ng build` compiles the templates; here the browser does.
  angular: { root: "<app-root></app-root>", entry: "src/main.ts", before: "@angular/compiler" },
  "assistant-ui": { root: `<div id="root"></div>`, entry: "src/main.tsx" },
};

let browser: Browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

for (const [name, { root, entry, ...more }] of Object.entries(CLIENTS)) {
  test(`${name}: streams, asks, runs the browser's tool, comes back after a reload, and stops`, async () => {
    const files = await filesOf(`docs/howto/${name}.md`);
    const script = await bundle(files, entry, "before" in more ? more.before : undefined);
    const html = `<!doctype html><link rel="icon" href="data:,">${root}<script type="module" src="${name}.js"></script>`;
    const context = await browser.newContext({ permissions: ["geolocation"], geolocation: TOKYO });
    context.setDefaultTimeout(TIMEOUT_MS);
    const complaints: string[] = [];
    context.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    context.on("weberror", (error) => complaints.push(String(error.error().stack)));
    // At an address of the demo's own origin, where its API is.
    const address = `${addressOf("demo")}${name}`;
    const served = { [address]: ["text/html", html], [`${address}.js`]: ["text/javascript; charset=utf-8", script] };
    for (const [url, [contentType, body]] of Object.entries(served)) {
      await context.route(url, (route) => route.fulfill({ contentType, body }));
    }
    try {
      const page = await context.newPage();
      await page.goto(address);
      await converse(page);
      if (name === "assistant-ui") await writeOn(page);
      assert.deepEqual(complaints, [], "the browser complained");
    } catch (error) {
      throw new Error(`The browser said: ${complaints.join("\n") || "nothing"}`, { cause: error });
    } finally {
      await context.close();
    }
  });
}

async function converse(page: Page): Promise<void> {
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
  assert.deepEqual(posts, ["", "", "", "", "", ""], "each turn is posted, and each answer once");

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
