/** Says in words what a call does, though only the names of the tool and of its arguments are known. */
import { isRecord } from "../is-record.ts";

/** `process_payment`, `processPayment` -> "Process payment". Unusual spaces stay, so that they can be marked. */
export function humanise(name: string): string {
  const words = name
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .replace(/[_\-. ]+/g, " ")
    .replace(/^ | $/g, "")
    .toLowerCase();
  return words === "" ? name : words[0]!.toUpperCase() + words.slice(1);
}

/** Names of arguments that read well behind the name of a tool. */
const LINKS: [word: string, names: string[]][] = [
  ["of", ["amount"]],
  ["to", ["recipient", "to"]],
  ["from", ["sender", "from"]],
  ["in", ["location", "city", "place"]],
];
const MAX_IN_SENTENCE = 40;

/** "Process payment of 50 USD to Hanako", as far as the arguments have names that say it. */
export function sentence(toolName: string, input: unknown): string {
  if (!isRecord(input)) return humanise(toolName);
  const said = LINKS.flatMap(([word, names]) => {
    const value = names.map((name) => input[name]).find(isShort);
    if (value === undefined) return [];
    const unit = names.includes("amount") && isShort(input.currency) ? ` ${input.currency}` : "";
    return [`${word} ${value}${unit}`];
  });
  return [humanise(toolName), ...said].join(" ");
}

/** The arguments in one line, for the head of a card and for the names of its buttons. */
export function inOneLine(input: unknown): string {
  const text = isRecord(input)
    ? Object.entries(input)
        .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
        .join(", ")
    : input === undefined
      ? ""
      : JSON.stringify(input);
  if (text.length <= 200) return text;
  // Not cut inside of an emoji: half of one would be marked as an invisible character.
  return `${text.slice(0, 200).replace(/[\p{Cs}\u200d]+$/u, "")}…`;
}

/** ADK's own hint is written for programs. */
export function isForPeople(hint: string): boolean {
  return !/FunctionResponse/.test(hint);
}

const LIMITS: Record<string, string> = {
  time: "The answer took too long and was ended here.",
  size: "The answer grew too large and was ended here.",
  "model-calls": "The agent has used up its steps for one answer.",
};

export function limitSentence(limit: string): string {
  return LIMITS[limit] ?? `The answer was ended by a limit: ${limit}.`;
}

function isShort(value: unknown): value is string | number {
  return typeof value === "number" || (typeof value === "string" && value !== "" && value.length <= MAX_IN_SENTENCE);
}
