/** The list of chats. */
import assert from "node:assert/strict";
import { visit } from "./harness.ts";

visit("chats are begun, listed by title, opened again and deleted", {}, async ({ chat }) => {
  const list = chat.page.getByRole("navigation", { name: "Chats" });
  await chat.say("What is the weather in Tokyo?");
  await chat.shows(/The weather in Tokyo is/);
  await list.getByText("What is the weather in Tokyo?").waitFor();
  await chat.button("New chat").click();
  await chat.showsNot(/The weather in Tokyo is/);
  await chat.say("What is the weather in Oslo?");
  await chat.shows(/The weather in Oslo is/);
  await list.getByText("What is the weather in Oslo?").waitFor();
  await list.getByText("What is the weather in Tokyo?").click();
  await chat.shows(/The weather in Tokyo is/);
  await chat.showsNot(/The weather in Oslo is/);
  await chat.button(/^Delete .*Tokyo/).click();
  await chat.button("Delete").click();
  await list.getByText("What is the weather in Tokyo?").waitFor({ state: "hidden" });
  await chat.page.reload();
  await list.getByText("What is the weather in Oslo?").waitFor();
  assert.equal(await list.getByText("What is the weather in Tokyo?").count(), 0);
});

visit("a chat that waits for an approval says so from afar", {}, async ({ chat }) => {
  const list = chat.page.getByRole("navigation", { name: "Chats" });
  await chat.say("Send 50 dollars to Hanako");
  await chat.approve.first().waitFor();
  await chat.isIdle();
  await chat.button("New chat").click();
  await list.getByText(/1 waits|waits/).first().waitFor();
  await list.getByText("Send 50 dollars to Hanako").click();
  await chat.accept("Hanako");
  await chat.shows(/The new balance is 950 USD/);
  await list.getByText(/waits/).first().waitFor({ state: "hidden" });
});

visit("a chat goes on running while another is looked at", {}, async ({ chat }) => {
  const list = chat.page.getByRole("navigation", { name: "Chats" });
  await chat.say("tell me a long story");
  await chat.shows(/Once upon a time/);
  await list.getByText("tell me a long story").waitFor();
  await chat.button("New chat").click();
  await chat.say("What is the weather in Oslo?");
  await chat.shows(/The weather in Oslo is/);
  await list.getByText("tell me a long story").click();
  await chat.shows(/On the second day/);
  assert.equal(await chat.answers.count(), 1);
  await chat.button("Stop").click();
  await chat.isIdle();
});

visit("an address names a chat", {}, async ({ chat, openTab, url }) => {
  await chat.say("What is the weather in Tokyo?");
  await chat.shows(/The weather in Tokyo is/);
  const other = await openTab();
  await other.shows(/The weather in Tokyo is/);
  const third = await openTab(url);
  await third.composer.waitFor();
  assert.equal(await third.questions.count(), 0);
});
