import { describe, expect, test } from "vitest";
import { editableJson, hasInvisible, pieces, visible } from "./invisible.ts";

const character = (number: number) => String.fromCodePoint(number);

describe("each of them is found, wherever it stands", () => {
  test.each([
    ["zero width, and marks of direction", 0x200b, 0x200f],
    ["joiners and operators that are not seen", 0x2060, 0x2064],
    ["byte order mark", 0xfeff, 0xfeff],
    ["embeddings and overrides of direction", 0x202a, 0x202e],
    ["isolates of direction", 0x2066, 0x2069],
    ["soft hyphen", 0x00ad, 0x00ad],
    ["Arabic letter mark", 0x061c, 0x061c],
    ["Mongolian vowel separator", 0x180e, 0x180e],
    ["combining grapheme joiner", 0x034f, 0x034f],
    ["tags", 0xe0000, 0xe007f],
    ["variation selectors", 0xfe00, 0xfe0f],
    ["more variation selectors", 0xe0100, 0xe01ef],
    ["Hangul fillers", 0x115f, 0x1160],
    ["another Hangul filler", 0x3164, 0x3164],
    ["half of a Hangul filler", 0xffa0, 0xffa0],
    ["controls before the tab", 0x0000, 0x0008],
    ["controls after the line feed", 0x000b, 0x001f],
    ["delete, and the second controls", 0x007f, 0x009f],
    ["halves of pairs", 0xd800, 0xdfff],
    ["separators of lines and paragraphs", 0x2028, 0x2029],
    ["no-break space", 0x00a0, 0x00a0],
    ["spaces of all widths", 0x2000, 0x200a],
    ["narrow no-break space", 0x202f, 0x202f],
    ["mathematical space", 0x205f, 0x205f],
    ["ideographic space", 0x3000, 0x3000],
    ["empty Braille pattern", 0x2800, 0x2800],
    ["private use", 0xe000, 0xe000],
    ["no character at all", 0xffff, 0xffff],
  ])("%s", (_, first, last) => {
    for (let number = first; number <= last; number++) {
      const name = `U+${number.toString(16).toUpperCase().padStart(4, "0")}`;
      expect(pieces(`x${character(number)}y`)).toEqual(["x", { character: character(number), number: name }, "y"]);
      expect(hasInvisible(character(number))).toBe(true);
    }
  });
});

test.each([
  ["words", "Pay 50 USD to Hanako, please.\n\tThank you!"],
  ["other scripts", "花子さん Ελένη Владимир שלום مرحبا नमस्ते 한국어"],
  ["accents, also as characters of their own", "é e\u0301 ñ n\u0303"],
  ["signs", "€ £ ¥ № § ± × ∞ ✓ ☎ ©"],
  ["emoji", "👍 😀 🚀"],
  ["emoji of several characters", "❤️ ☎️ 1️⃣ 👍🏽 👩‍👧 🧑🏽‍💻 👁️‍🗨️ 👩‍❤️‍💋‍👩 🏳️‍🌈 🇯🇵"],
  ["a flag made of tags", "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}"],
  ["nothing", ""],
])("is left as it is: %s", (_, text) => {
  expect(visible(text)).toBe(text);
  expect(hasInvisible({ [text]: [text] })).toBe(false);
});

test.each([
  ["a joiner between letters", "a\u200db", "a[U+200D]b"],
  ["a joiner after the end of an emoji", "👩\u200d", "👩[U+200D]"],
  ["a joiner between emoji that are not joined anywhere", "👍\u200d👍", "👍[U+200D]👍"],
  ["a variation of a letter", "a\ufe0f", "a[U+FE0F]"],
  ["a second variation", "❤\ufe0f\ufe0f", "❤\ufe0f[U+FE0F]"],
  ["words in tags behind a flag", "🏴\u{e0068}\u{e0069}\u{e007f}", "🏴[U+E0068][U+E0069][U+E007F]"],
  ["several in a row", "\u202e\u200b05\u202c", "[U+202E][U+200B]05[U+202C]"],
])("is marked in doubt: %s", (_, text, expected) => expect(visible(text)).toBe(expected));

test.each([
  [{ pay: { to: ["Bob\u200b"] } }, true],
  [{ "pa\u200by": 1 }, true],
  [["a", { b: null }, 1, true, undefined], false],
  [undefined, false],
  [null, false],
  [5, false],
])("is found at any depth, in names too: %j", (value, expected) => expect(hasInvisible(value)).toBe(expected));

test("JSON to edit shows them as escapes, and says the same", () => {
  const value = { "na\u200bme": ["\u202eeve", "tag\u{e0041}", "half\ud800", "👩‍👧 ok\n"] };
  const text = editableJson(value);
  expect(text).toContain('"na\\u200bme"');
  expect(text).toContain('"\\u202eeve"');
  expect(text).toContain('"tag\\udb40\\udc41"');
  expect(text).toContain("👩‍👧 ok\\n");
  expect(hasInvisible(text)).toBe(false);
  expect(JSON.parse(text)).toEqual(value);
});
