/** Every scenario of the demo, clicked through in both modes. */
import assert from "node:assert/strict";
import { type Mode, MODES, visit } from "./harness.ts";
import { hearNothing, hearSomething } from "./loudspeaker.ts";

type Step = "approve" | "deny";

interface Scenario {
  name: string;
  prompt: string;
  /** In the order of the calls. */
  steps?: Step[];
  /** What the model says in the end. */
  answer: RegExp;
  /** How many tool cards say so. */
  completed?: number;
  denied?: number;
  /** The wallet after it; a further payment of 1 tells. */
  balance?: number;
}

const SCENARIOS: Scenario[] = [
  { name: "weather", prompt: "What is the weather in Tokyo?", answer: /The weather in Tokyo is \w+ at/, completed: 1 },
  { name: "weather in Japanese", prompt: "東京の天気は？", answer: /東京の天気は/, completed: 1 },
  {
    name: "payment approved",
    prompt: "Send 50 dollars to Hanako",
    steps: ["approve"],
    answer: /Paid 50 USD to Hanako\. The new balance is 950 USD/,
    completed: 1,
  },
  {
    name: "payment denied",
    prompt: "花子さんに50ドル送金してください",
    steps: ["deny"],
    answer: /は拒否されました/,
    completed: 0,
    denied: 1,
    balance: 1000,
  },
  {
    name: "payment of more than there is",
    prompt: "Send 5000 dollars to Hanako",
    steps: ["approve"],
    answer: /failed: Insufficient funds/,
    balance: 1000,
  },
  {
    name: "location approved",
    prompt: "What is my location?",
    steps: ["approve"],
    answer: /You are at latitude 35\.68\d* and longitude 139\.76\d*/,
    completed: 1,
  },
  {
    name: "location denied",
    prompt: "Where am I?",
    steps: ["deny"],
    answer: /The request for your location was denied/,
    completed: 0,
    denied: 1,
  },
  {
    name: "two payments approved",
    prompt: "Pay Alice 30 dollars and Bob 40 dollars",
    steps: ["approve", "approve"],
    answer: /The new balance is 970 USD.*The new balance is 930 USD/,
    completed: 2,
  },
  {
    name: "two payments, the first approved, the second denied",
    prompt: "Pay Alice 30 dollars and Bob 40 dollars",
    steps: ["approve", "deny"],
    answer: /The new balance is 970 USD\. The payment of 40 USD to Bob was denied/,
    completed: 1,
    denied: 1,
    balance: 970,
  },
  {
    name: "two payments, the first denied, the second approved",
    prompt: "Pay Alice 30 dollars and Bob 40 dollars",
    steps: ["deny", "approve"],
    answer: /The payment of 30 USD to Alice was denied\. Paid 40 USD to Bob\. The new balance is 960 USD/,
    completed: 1,
    denied: 1,
  },
  {
    name: "one payment after the other",
    prompt: "Pay Alice 30 dollars, then Bob 40 dollars",
    steps: ["approve", "approve"],
    answer: /The new balance is 970 USD.*The new balance is 930 USD/,
    completed: 2,
  },
];

for (const mode of MODES) {
  for (const scenario of SCENARIOS) play(scenario, mode);

  visit(`change of the music, ${mode}`, { mode }, async ({ chat }) => {
    await chat.say("Change BGM to track 1");
    await chat.shows("The background music is now track 1.");
    await chat.shows("Completed");
    await hearSomething(chat.page);
    await chat.button("Turn the music off").click();
    await hearNothing(chat.page);
  });

  visit(`second of two payments decided before the first, ${mode}`, { mode }, async ({ chat }) => {
    await chat.say("Pay Alice 30 dollars and Bob 40 dollars");
    if (mode === "Chat") await chat.decline("Bob");
    await chat.accept("Alice");
    if (mode === "Live") await chat.decline("Bob");
    await chat.shows(/The new balance is 970 USD\. The payment of 40 USD to Bob was denied/);
  });

  visit(`thinking before the answer, ${mode}`, { mode }, async ({ chat }) => {
    await chat.say("think about the weather in Oslo");
    await chat.shows(/The weather in Oslo is/);
    await chat.log.getByText(/Thought/).first().click();
    await chat.shows(/Let me see which of my tools can help/);
  });
}

visit("a browser that does not tell where it is", { permissions: [] }, async ({ chat }) => {
  await chat.say("What is my location?");
  await chat.accept();
  await chat.shows(/The request for your location failed/);
  assert.equal(await chat.cards("Failed").count(), 1);
});

function play({ name, prompt, steps = [], answer, completed, denied = 0, balance }: Scenario, mode: Mode): void {
  visit(`${name}, ${mode}`, { mode }, async ({ chat }) => {
    await chat.say(prompt);
    for (const step of steps) await (step === "approve" ? chat.accept() : chat.decline());
    await chat.shows(answer);
    await chat.isIdle();
    assert.equal(await chat.approve.count(), 0, "nothing waits any more");
    if (completed !== undefined) assert.equal(await chat.cards("Completed").count(), completed);
    assert.equal(await chat.cards(/denied/i).count(), denied);
    assert.equal(await chat.answers.count(), 1, "one message, however many segments it came in");
    if (balance !== undefined) {
      await chat.say("Send 1 dollar to Zoe");
      await chat.accept("Zoe");
      await chat.shows(new RegExp(`The new balance is ${balance - 1} USD`));
    }
  });
}
