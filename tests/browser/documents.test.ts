/** The README and the quickstart: what people paste from them works, page and server together. Nothing of it is changed but the model. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { createServer, type ViteDevServer } from "../../page/node_modules/vite/dist/node/index.js";
import { filesOf, ROOT } from "./bundling.ts";
import { launch } from "./chromium.ts";
import { TOKYO } from "./harness.ts";
import { freePort, type Server, startDocumented } from "./servers.ts";

const TIMEOUT_MS = 30_000; // the first page waits for Vite to prepare its packages

/** What `npm create vite@latest my-page -- --template react-ts` makes, as far as it matters here. */
const TEMPLATE = {
  "index.html": `<!doctype html><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="/src/main.tsx"></script>`,
  "package.json": `{"type": "module"}`,
  "vite.config.ts": `import react from "@vitejs/plugin-react";\nexport default { plugins: [react()] };`,
  "src/main.tsx": `import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import App from "./App.tsx";
createRoot(document.getElementById("root")!).render(<StrictMode><App /></StrictMode>);`,
};

/** A page of the docs, followed: a server, a development server, and a browser for which both are where the docs say. */
class Followed {
  #scratch = "";
  #server?: Server;
  #vite?: ViteDevServer;
  #browser?: Browser;

  async open(page: string): Promise<void> {
    this.#scratch = await mkdtemp(join(tmpdir(), "documented-"));
    const files = { ...TEMPLATE, ...(await filesOf(page)) };
    for (const [name, code] of Object.entries(files)) {
      await mkdir(dirname(join(this.#scratch, name)), { recursive: true });
      await writeFile(join(this.#scratch, name), code);
    }
    await symlink(join(ROOT, "page", "node_modules"), join(this.#scratch, "node_modules"));
    this.#server = await startDocumented(join(this.#scratch, "app.py"));
    const { proxy } = (await import(join(this.#scratch, "vite.config.ts"))).default.server ?? {};
    for (const rule of Object.values<{ target: string }>(proxy ?? {})) {
      assert.equal(rule.target, "http://127.0.0.1:8000");
      rule.target = this.#server.origin;
    }
    this.#vite = await createServer({
      root: this.#scratch,
      cacheDir: join(this.#scratch, ".vite"),
      logLevel: "error",
      resolve: { alias: { "adk-stream-client": join(ROOT, "client", "src", "index.ts") } },
      server: { host: "127.0.0.1", port: await freePort(), fs: { strict: false }, proxy },
    });
    await this.#vite.listen();
    const places = { 8000: new URL(this.#server.origin).host, 5173: new URL(this.#vite.resolvedUrls!.local[0]!).host };
    const rules = Object.entries(places).map(([port, host]) => `MAP localhost:${port} ${host}`);
    this.#browser = await launch(`--host-resolver-rules=${rules.join(",")}`);
  }

  async close(): Promise<void> {
    await this.#browser?.close();
    await this.#vite?.close();
    await this.#server?.stop();
    await rm(this.#scratch, { recursive: true });
  }

  async visit(body: (page: Page) => Promise<void>, mayComplain?: RegExp): Promise<void> {
    const context = await this.#browser!.newContext({ permissions: ["geolocation"], geolocation: TOKYO });
    context.setDefaultTimeout(TIMEOUT_MS);
    const complaints: string[] = [];
    context.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    context.on("weberror", (error) => complaints.push(String(error.error().stack)));
    try {
      const page = await context.newPage();
      await page.goto("http://localhost:5173/");
      await body(page);
      assert.deepEqual(complaints.filter((complaint) => !mayComplain?.test(complaint)), [], "the browser complained");
    } catch (error) {
      throw new Error(`The browser said: ${complaints.join("\n") || "nothing"}`, { cause: error });
    } finally {
      await context.close();
    }
  }
}

async function say(page: Page, words: string): Promise<void> {
  await page.getByRole("button", { name: "Send", disabled: false }).waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill(words);
  await page.getByRole("textbox", { name: "Message" }).press("Enter");
}

const shows = (page: Page, words: RegExp) => page.getByText(words).waitFor();

describe("the README", () => {
  const followed = new Followed();
  before(() => followed.open("README.md"));
  after(() => followed.close());

  test("its server answers its page, and each browser is a user of its own", async () => {
    let cookie: string | undefined;
    await followed.visit(async (page) => {
      await say(page, "Hello");
      await shows(page, /^assistant: You said: Hello$/);
      const before = await page.context().cookies();
      await say(page, "again");
      await shows(page, /^assistant: You said: again$/);
      [cookie] = before.map(({ name, value }) => `${name}=${value}`);
      assert.deepEqual(await page.context().cookies(), before, "who has a cookie keeps it");
    });
    assert.ok(cookie);
    await followed.visit(async (page) => {
      await say(page, "Hello");
      await shows(page, /^assistant: You said: Hello$/);
      const [own] = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`);
      assert.notEqual(own, cookie);
    });
  });
});

describe("the quickstart", () => {
  const followed = new Followed();
  before(() => followed.open("docs/howto/quickstart.md"));
  after(() => followed.close());

  async function signIn(page: Page): Promise<void> {
    await page.getByRole("textbox", { name: "Name" }).fill("ann");
    await page.getByRole("textbox", { name: "Password" }).fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").filter({ hasText: "Wrong name or password." }).waitFor();
    await page.getByRole("textbox", { name: "Name" }).fill("ann");
    await page.getByRole("textbox", { name: "Password" }).fill("correct horse");
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  test("signs in, asks, pays once, runs the browser's tool, and comes back after a reload", async () => {
    await followed.visit(async (page) => {
      await signIn(page);
      await say(page, "Send 5 dollars to Bob");
      await shows(page, /^pay \{"amount":5,"recipient":"Bob"\}/);
      await page.reload();
      await page.getByRole("button", { name: "Approve" }).click();
      await shows(page, /^assistant: pay gave .*5 to Bob/);
      await say(page, "Send 5 dollars to Bob");
      await page.getByRole("button", { name: "Deny" }).click();
      await shows(page, /^assistant: pay gave .*(denied|rejected)/i);
      await say(page, "Where am I?");
      await shows(page, /^assistant: get_location gave .*35\.6812/);
      await page.reload();
      await shows(page, /^assistant: get_location gave .*35\.6812/);
      assert.equal(await page.getByText(/^(user|assistant): /).count(), 6);
    }, /401/);
  });

  test("resumes an answer after a reload, stops it, and goes on", async () => {
    await followed.visit(async (page) => {
      await signIn(page);
      await say(page, "tell me a story");
      await shows(page, /^assistant: Once upon a time/);
      await page.reload();
      await shows(page, /^assistant: Once upon a time/);
      await page.getByRole("button", { name: "Stop" }).click();
      await say(page, "Hello");
      await shows(page, /^assistant: You said: Hello$/);
      assert.equal(await page.getByText(/^(user|assistant): /).count(), 4);
    }, /401/);
  });

  test("shows the sentence of a refusal", async () => {
    await followed.visit(async (page) => {
      await signIn(page);
      await say(page, "Hello");
      await shows(page, /^assistant: You said: Hello$/);
      await page.context().clearCookies();
      await say(page, "Hello again");
      await page.getByRole("alert").filter({ hasText: /^Sign in first\.$/ }).waitFor();
    }, /401/);
  });
});
