import { expect, test } from "vitest";
import { hasInvisible } from "./invisible.ts";
import { humanise, inOneLine, limitSentence, sentence } from "./words.ts";

test("names of tools become words", () => {
  expect(humanise("process_payment")).toBe("Process payment");
  expect(humanise("bookRoom")).toBe("Book room");
  expect(humanise("mail.send-now")).toBe("Mail send now");
  expect(humanise("__")).toBe("__");
});

test("arguments with telling names go into the sentence", () => {
  expect(sentence("process_payment", { amount: 50, recipient: "Hanako", currency: "USD" })).toBe(
    "Process payment of 50 USD to Hanako",
  );
  expect(sentence("get_weather", { location: "Tokyo" })).toBe("Get weather in Tokyo");
  expect(sentence("book_room", { hotel: "Ryokan", nights: 2 })).toBe("Book room");
  expect(sentence("get_location", undefined)).toBe("Get location");
});

test("what is too long or no single value stays out of the sentence", () => {
  expect(sentence("pay", { amount: { value: 1 }, recipient: "x".repeat(41), to: "" })).toBe("Pay");
});

test("nothing that hides is dropped from a name on the way to its words", () => {
  expect(humanise("pay\u00a0all")).toBe("Pay\u00a0all");
  expect(humanise("\ufeff_pay_")).toBe("\ufeff pay");
});

test("arguments in one line are short", () => {
  expect(inOneLine({ track: 1, name: "a b", list: [1] })).toBe("track: 1, name: a b, list: [1]");
  expect(inOneLine(undefined)).toBe("");
  expect(inOneLine({ text: "x".repeat(500) }).length).toBeLessThan(210);
  for (let before = 185; before < 200; before++)
    expect(hasInvisible(inOneLine({ text: `${"x".repeat(before)}👩‍👧 and more` }))).toBe(false); // no emoji is cut
});

test("limits are told in words, also those that are new", () => {
  expect(limitSentence("time")).toContain("too long");
  expect(limitSentence("patience")).toContain("patience");
});
