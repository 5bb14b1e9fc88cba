/** The example pages of `examples/`: built as their readers build them, and clicked through over HTTP and live. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { build, preview, type PreviewServer } from "../../page/node_modules/vite/dist/node/index.js";
import { launch } from "./chromium.ts";
import { addressOf, endWhileLoading, TOKYO } from "./harness.ts";

const ROOT = join(import.meta.dirname, "..", "..");
/** Where the pinned releases are that the examples name, too. */
const INSTALLED = ["page", "client", "client/node_modules/@ai-sdk/vue"].map((path) => join(ROOT, path, "node_modules"));
const TIMEOUT_MS = 15_000;
/** Comments and empty lines apart, the imports included. */
const MAX_LINES = { react: 64, vue: 71 };

type Way = "HTTP" | "live";

let browser: Browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

for (const name of ["react", "vue"] as const) {
  describe(`the example for ${name}`, () => {
    let scratch: string;
    let folder: string;
    let server: PreviewServer;

    before(async () => {
      scratch = await mkdtemp(join(tmpdir(), "example-"));
      folder = await install(name, scratch);
      await build({ root: folder, logLevel: "error" });
      // The example's own proxy, but for the port of the agent.
      const proxy = { "/api": { target: new URL(addressOf("demo")).origin } };
      const address = { host: "127.0.0.1", port: 0 };
      server = await preview({ root: folder, logLevel: "silent", server: { proxy }, preview: address });
    });
    after(async () => {
      await server?.close();
      await rm(scratch, { recursive: true });
    });

    test("has sound types", async () => {
      const compiler = join(folder, "node_modules", "typescript", "bin", "tsc");
      await promisify(execFile)(process.execPath, [compiler, "-p", folder]).catch(({ stdout }) => assert.fail(stdout));
    });

    test("is short", async () => {
      const lines = (await readFile(join(folder, "main.tsx"), "utf8")).split("\n").map((line) => line.trim());
      const counted = lines.filter((line) => line !== "" && !line.startsWith("//") && !line.startsWith("/*"));
      assert.ok(counted.length <= MAX_LINES[name], `${counted.length} lines`);
    });

    for (const way of ["HTTP", "live"] as const) {
      visit(`shows answers, asks, and runs the browser's tools, ${way}`, async (chat) => {
        if (way === "live") await chat.switchTo("live");
        await chat.say("What is the weather in Tokyo?");
        await chat.shows(/^assistant: .*The weather in Tokyo is/);
        await chat.say("Send 50 dollars to Hanako");
        await chat.page.getByText('process_payment {"amount":50,"recipient":"Hanako"').waitFor();
        await chat.decide("Approve");
        await chat.shows(/^assistant: .*Paid 50 USD to Hanako\. The new balance is 950 USD/);
        await chat.say("Send 60 dollars to Taro");
        await chat.decide("Deny");
        await chat.shows(/^assistant: .*The payment of 60 USD to Taro was denied/);
        await chat.say("What is my location?");
        await chat.decide("Approve");
        await chat.shows(/^assistant: .*You are at latitude 35\.68\d* and longitude 139\.76\d*/);
        await chat.say("Change BGM to track 2");
        await chat.shows(/^assistant: .*The background music is now track 2/);
        assert.equal(await chat.page.title(), "Track 2");
        assert.equal(await chat.messages.count(), 10, "a question and an answer each");
        const turns = { HTTP: chat.posts > 0, live: chat.sockets > 0 };
        assert.deepEqual(turns, { HTTP: way === "HTTP", live: way === "live" });
      });

      visit(`goes on after a reload, ${way}`, async (chat) => {
        if (way === "live") await chat.switchTo("live");
        await chat.say("Send 50 dollars to Hanako");
        await chat.approve.waitFor();
        await chat.page.reload();
        await chat.decide("Approve");
        await chat.shows(/The new balance is 950 USD/);
        await chat.page.evaluate(() => {
          navigator.geolocation.getCurrentPosition = () => void (document.title = "Asked, and did not answer");
        });
        await chat.say("Where am I?");
        await chat.decide("Approve");
        await chat.page.waitForFunction(() => document.title.startsWith("Asked"));
        await chat.isIdle();
        await chat.page.reload();
        await chat.shows(/You are at latitude 35\.68/);
        await chat.say("tell me a long story");
        await chat.messages.nth(5).waitFor();
        await chat.page.reload();
        await chat.messages.nth(5).waitFor(); // the record has no answer that is not complete
        assert.equal(await chat.messages.count(), 6, "a question and an answer each");
      });
    }

    visit("shows an answer that ends while the page is loaded", async (chat) => {
      await chat.say("tell me a long story");
      await chat.shows(/^assistant: .*Once upon a time/);
      await endWhileLoading(chat.page);
      await chat.page.reload();
      await chat.shows(/^assistant: .*Once upon a time/);
      await chat.isIdle();
      assert.equal(await chat.messages.count(), 2, "a question and an answer");
    });

    visit("hears in a live session what was decided elsewhere", async (chat) => {
      await chat.switchTo("live");
      await chat.say("Send 50 dollars to Hanako");
      await chat.approve.waitFor();
      const other = new ExampleChat(await chat.page.context().newPage());
      await other.page.goto(chat.page.url());
      await other.decide("Approve");
      await chat.shows(/The new balance is 950 USD/);
      await chat.isIdle();
      assert.equal(await chat.messages.count(), 2, "a question and an answer");
      assert.equal((await chat.messages.last().innerText()).split("The new balance").length, 2, "told once");
    });

    visit("goes from HTTP to live and back between two turns", async (chat) => {
      await chat.say("Send 50 dollars to Hanako");
      await chat.decide("Approve");
      await chat.shows(/The new balance is 950 USD/);
      await chat.switchTo("live");
      await chat.say("Send 50 dollars to Taro");
      await chat.decide("Approve");
      await chat.shows(/The new balance is 900 USD/);
      // However long it takes to end the live session, the next turn waits for it.
      const said = Promise.withResolvers<void>();
      await chat.page.route("**/stop", (route) => said.promise.then(() => route.continue()));
      await chat.switchTo("HTTP");
      await chat.say("Send 50 dollars to Jiro");
      said.resolve();
      await chat.decide("Approve");
      await chat.shows(/The new balance is 850 USD/);
      assert.equal(await chat.messages.count(), 6, "a question and an answer each");
    });

    visit("tells what went wrong", async (chat) => {
      await chat.page.route("**/api/chat", (route) => route.fulfill({ status: 503, body: "No more today." }));
      await chat.say("What is the weather in Tokyo?");
      await chat.page.getByRole("alert").filter({ hasText: "No more today." }).waitFor();
    }, /503/);

    function visit(told: string, body: (chat: ExampleChat) => Promise<void>, mayComplain?: RegExp): void {
      test(told, async () => {
        const context = await browser.newContext({ permissions: ["geolocation"], geolocation: TOKYO });
        context.setDefaultTimeout(TIMEOUT_MS);
        const complaints: string[] = [];
        context.on("console", (message) => {
          if (["error", "warning"].includes(message.type())) complaints.push(message.text());
        });
        context.on("weberror", (error) => complaints.push(String(error.error().stack)));
        try {
          const chat = new ExampleChat(await context.newPage());
          await chat.page.goto(server.resolvedUrls!.local[0]!);
          await body(chat);
          const unexpected = complaints.filter((complaint) => !mayComplain?.test(complaint));
          assert.deepEqual(unexpected, [], "the browser complained");
        } catch (error) {
          throw new Error(`The browser said: ${complaints.join("\n") || "nothing"}`, { cause: error });
        } finally {
          await context.close();
        }
      });
    }
  });
}

class ExampleChat {
  readonly page: Page;
  /** How often a turn went over HTTP. */
  posts = 0;
  sockets = 0;

  constructor(page: Page) {
    this.page = page;
    page.on("request", (request) => {
      if (request.method() === "POST" && request.url().endsWith("/api/chat")) this.posts++;
    });
    page.on("websocket", () => this.sockets++);
  }

  get messages() {
    return this.page.getByText(/^(user|assistant): /);
  }

  get approve() {
    return this.page.getByRole("button", { name: "Approve" });
  }

  async say(words: string): Promise<void> {
    await this.isIdle();
    await this.page.getByRole("textbox", { name: "Message" }).fill(words);
    await this.page.getByRole("textbox", { name: "Message" }).press("Enter");
    await this.shows(`user: ${words}`);
  }

  async decide(decision: "Approve" | "Deny"): Promise<void> {
    await this.page.getByRole("button", { name: decision }).click();
  }

  async switchTo(way: Way): Promise<void> {
    await this.isIdle();
    const box = this.page.getByRole("checkbox", { name: "Live" });
    await box.click();
    await this.page.getByRole("checkbox", { name: "Live", checked: way === "live" }).waitFor();
  }

  async shows(words: string | RegExp): Promise<void> {
    await this.messages.filter({ hasText: words }).waitFor();
  }

  async isIdle(): Promise<void> {
    await this.page.getByRole("button", { name: "Send", disabled: false }).waitFor();
  }
}

/** A copy of the example, with what its `package.json` names linked from where those very releases are installed. */
async function install(name: string, scratch: string): Promise<string> {
  const folder = join(scratch, "examples", name);
  await cp(join(ROOT, "examples", name), folder, {
    recursive: true,
    filter: (path) => !path.includes("node_modules") && !path.endsWith("dist"),
  });
  await symlink(join(ROOT, "client"), join(scratch, "client"));
  const { dependencies, devDependencies } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  for (const [dependency, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    const versions = await Promise.all(INSTALLED.map((path) => versionOf(join(path, dependency))));
    const place = INSTALLED[versions.indexOf(version as string)];
    assert.ok(place, `${dependency} ${version} of the example is not what the page or the client has: ${versions}`);
    const link = join(folder, "node_modules", dependency);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(place, dependency), link);
  }
  return folder;
}

async function versionOf(path: string): Promise<string | undefined> {
  const text = await readFile(join(path, "package.json"), "utf8").catch(() => "{}");
  return (JSON.parse(text) as { version?: string }).version;
}
