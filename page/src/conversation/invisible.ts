/**
 * Characters that are invisible, that reverse the order of others, or that look like a space and are none. Where a
 * person decides on a text, each of them is shown by its number.
 */

/** A real emoji is passed over as a whole: the joiners and colours in it can be seen. */
const FOUND = /(?=\p{Emoji})\p{RGI_Emoji}|([[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]--[\t\n ]])/gv;

export interface Invisible {
  character: string;
  /** As in "U+202E". */
  number: string;
}

/** The text, cut at such characters. */
export function pieces(text: string): (string | Invisible)[] {
  const found: (string | Invisible)[] = [];
  let end = 0;
  for (const { 1: character, index } of text.matchAll(FOUND)) {
    if (character === undefined) continue;
    if (index > end) found.push(text.slice(end, index));
    found.push({ character, number: numberOf(character) });
    end = index + character.length;
  }
  if (end < text.length) found.push(text.slice(end));
  return found;
}

/** For places that hold nothing but text, such as the names of buttons. */
export function visible(text: string): string {
  return replaced(text, ({ number }) => `[${number}]`);
}

/** JSON to edit, with such characters as JSON's own escapes, which mean the same. */
export function editableJson(value: unknown): string {
  return replaced(JSON.stringify(value, null, 2), ({ character }) =>
    character.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}

/** Whether such a character is anywhere in the value, names of fields included. */
export function hasInvisible(value: unknown): boolean {
  if (typeof value === "string") return pieces(value).some((piece) => typeof piece !== "string");
  return typeof value === "object" && value !== null && Object.entries(value).flat().some(hasInvisible);
}

function replaced(text: string, by: (invisible: Invisible) => string): string {
  return pieces(text)
    .map((piece) => (typeof piece === "string" ? piece : by(piece)))
    .join("");
}

function numberOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}
