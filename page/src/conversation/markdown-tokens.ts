/** The lexer of `marked`, bounded: hostile text may be ugly, but neither overflows the stack nor stops the page. */
import { Lexer, type Token } from "marked";
import remend from "remend";

/** Some inline rules take quadratic time. Paragraphs of people and models are shorter. */
const MAX_INLINE = 5_000;
const MAX_DEPTH = 30;
const MAX_TEXT = 200_000;
/** Markdown that is still being written is completed. A longer text may show its asterisks for a moment instead. */
const MAX_COMPLETED = 20_000;

export function lex(text: string, isStreaming: boolean): Token[] {
  if (text.length > MAX_TEXT) return [plain(text)];
  const whole = isStreaming && text.length < MAX_COMPLETED ? remend(text, { linkMode: "text-only" }) : text;
  try {
    return new BoundedLexer({ gfm: true }).lex(whole);
  } catch {
    // `marked` throws where it would loop for ever. Then the text is shown as it is.
    return [plain(text)];
  }
}

class BoundedLexer extends Lexer {
  #depth = 0;

  override blockTokens(source: string, tokens: Token[] = [], isClipped = false): any {
    return this.#bounded(source, tokens, () => super.blockTokens(source, tokens, isClipped));
  }

  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    return this.#bounded(source, tokens, () => super.inlineTokens(source, tokens), MAX_INLINE);
  }

  #bounded(source: string, tokens: Token[], lexOn: () => Token[], maxLength = Number.POSITIVE_INFINITY): Token[] {
    if (this.#depth >= MAX_DEPTH || source.length > maxLength) {
      tokens.push(plain(source));
      return tokens;
    }
    this.#depth += 1;
    try {
      return lexOn();
    } finally {
      this.#depth -= 1;
    }
  }
}

function plain(text: string): Token {
  return { type: "plain", raw: text, text };
}

const ENTITIES = new Map(
  Object.entries({
    amp: "&",
    lt: "<",
    gt: ">",
    quot: '"',
    apos: "'",
    nbsp: "\u00a0",
    copy: "©",
    hellip: "…",
    mdash: "—",
    ndash: "–",
  }),
);

/** Markdown may name characters as HTML does; React would show the names. */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]{2,6}));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return ENTITIES.get(name) ?? whole;
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
