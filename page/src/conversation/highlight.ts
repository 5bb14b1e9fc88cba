/** Colours for code, loaded when the first block of code is shown. Its HTML is parsed here, and never set as HTML. */
import type { LanguageFn } from "highlight.js";

export type Piece = { text: string; scope: string | undefined };

const ALIASES = new Map(
  Object.entries({
    py: "python",
    js: "javascript",
    jsx: "javascript",
    ts: "typescript",
    tsx: "typescript",
    sh: "bash",
    shell: "bash",
    zsh: "bash",
    console: "bash",
    yml: "yaml",
    html: "xml",
    jsonl: "json",
  }),
);

const LANGUAGES = new Map<string, () => Promise<{ default: LanguageFn }>>(
  Object.entries({
    bash: () => import("highlight.js/lib/languages/bash"),
    css: () => import("highlight.js/lib/languages/css"),
    javascript: () => import("highlight.js/lib/languages/javascript"),
    json: () => import("highlight.js/lib/languages/json"),
    python: () => import("highlight.js/lib/languages/python"),
    sql: () => import("highlight.js/lib/languages/sql"),
    typescript: () => import("highlight.js/lib/languages/typescript"),
    xml: () => import("highlight.js/lib/languages/xml"),
    yaml: () => import("highlight.js/lib/languages/yaml"),
  }),
);

/** Longer code stays plain: while it is streamed, every piece that comes colours all of it again. */
const MAX_CODE = 20_000;

export async function highlight(code: string, language: string): Promise<Piece[] | undefined> {
  const name = ALIASES.get(language) ?? language;
  const load = LANGUAGES.get(name);
  if (load === undefined || code.length > MAX_CODE) return undefined;
  const [{ default: core }, { default: grammar }] = await Promise.all([import("highlight.js/lib/core"), load()]);
  if (core.getLanguage(name) === undefined) core.registerLanguage(name, grammar);
  return pieces(core.highlight(code, { language: name, ignoreIllegals: true }).value);
}

const ESCAPES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

/** The HTML of highlight.js has spans with a class and five escapes, nothing else. */
function pieces(html: string): Piece[] {
  const scopes: string[] = [];
  const found: Piece[] = [];
  for (const [, opened, text] of html.matchAll(/<span class="([^"]*)">|<\/span>|([^<]+)/g)) {
    if (opened !== undefined) scopes.push(opened);
    else if (text === undefined) scopes.pop();
    else
      found.push({ text: text.replace(/&(?:amp|lt|gt|quot|#x27);/g, (name) => ESCAPES[name]!), scope: scopes.at(-1) });
  }
  return found;
}
