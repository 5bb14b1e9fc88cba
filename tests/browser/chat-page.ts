/** The page as a person finds it: by what things are called, never by how they are built. */
import type { Locator, Page } from "playwright-core";

export class ChatPage {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  get composer(): Locator {
    return this.page.getByRole("textbox", { name: "Message", exact: true });
  }

  /** The conversation, without what the inspector shows of it. */
  get log(): Locator {
    return this.page.getByRole("log");
  }

  get inspector(): Locator {
    return this.page.getByRole("region", { name: "Inspector" });
  }

  /** The agent's messages. */
  get answers(): Locator {
    return this.log.getByRole("article", { name: "Agent", exact: true });
  }

  get questions(): Locator {
    return this.log.getByRole("article", { name: "You", exact: true });
  }

  get approve(): Locator {
    return this.log.getByRole("button", { name: /^Approve /, disabled: false });
  }

  get deny(): Locator {
    return this.log.getByRole("button", { name: /^Deny /, disabled: false });
  }

  /** One entry of the inbox, by words in it. */
  entry(words: string | RegExp): Locator {
    const has = this.page.getByRole("heading", { level: 2 });
    return this.page.getByRole("main", { name: "Inbox" }).getByRole("listitem").filter({ has, hasText: words });
  }

  async openInbox(): Promise<void> {
    await this.page.getByRole("link", { name: /^Inbox/ }).click();
    await this.page.getByRole("heading", { level: 1, name: "Inbox" }).waitFor();
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole("button", { name, exact: typeof name === "string" });
  }

  /** Tool cards with such words. */
  cards(words: string | RegExp): Locator {
    return this.log.getByRole("group", { name: /^\w+: / }).filter({ hasText: words });
  }

  async say(words: string): Promise<void> {
    await this.composer.fill(words);
    await this.composer.press("Enter");
  }

  /** Approves what waits, or the one that speaks of `what`. */
  async accept(what = ""): Promise<void> {
    await this.decision("Approve", what).first().click();
  }

  async decline(what = "", reason = ""): Promise<void> {
    await this.decision("Deny", what).first().click();
    const form = this.log.locator("form").filter({ has: this.decision("Deny", what) });
    await form.getByRole("textbox", { name: /reason/i }).fill(reason);
    await form.locator(this.decision("Deny", what)).click();
  }

  private decision(word: "Approve" | "Deny", what: string): Locator {
    return this.page.getByRole("button", { name: new RegExp(`^${word} .*${what}`), disabled: false });
  }

  async switchTo(mode: "Chat" | "Live"): Promise<void> {
    await this.page.getByRole("radio", { name: mode, exact: true }).click();
    await this.page.getByRole("radio", { name: mode, exact: true, checked: true }).waitFor();
  }

  /** Some words in the conversation. */
  async shows(words: string | RegExp): Promise<void> {
    await this.log.getByText(words).first().waitFor();
  }

  async showsNot(words: string | RegExp): Promise<void> {
    await this.log.getByText(words).first().waitFor({ state: "hidden" });
  }

  /** Such words of the user's have their answer, whole. */
  async isAnswered(words: string): Promise<void> {
    const question = this.questions.filter({ hasText: words }).last();
    await question.locator("xpath=following-sibling::article").first().waitFor();
    await this.isIdle();
  }

  /** Nothing runs: the next message may be sent. */
  async isIdle(): Promise<void> {
    await this.button("Stop").waitFor({ state: "hidden" });
  }

  async isAnswering(): Promise<void> {
    await this.button("Stop").waitFor();
  }
}
