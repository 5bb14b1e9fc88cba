import { useEffect, useState } from "react";
import { CopyButton } from "./CopyButton.tsx";
import { highlight, type Piece } from "./highlight.ts";

/** Code is the one place where a hue does not stand for a family of chunks. */
const HUES: [RegExp, string][] = [
  [/comment|meta|quote/, "text-ink-2 italic"],
  [/keyword|built_in|type|operator|selector|section/, "text-reasoning"],
  [/string|regexp|addition/, "text-ok"],
  [/number|literal|symbol|deletion/, "text-approval"],
  [/title|function|attr|name|tag|property|variable/, "text-tool"],
];

export function CodeBlock({ code, language = "" }: { code: string; language?: string }) {
  const name =
    language
      .trim()
      .split(/[\s,{]/)[0]
      ?.toLowerCase() ?? "";
  const { pieces, rest } = useHighlighted(code, name);
  return (
    <figure className="overflow-hidden rounded-lg border border-line bg-paper-2">
      <figcaption className="flex items-center justify-between border-b border-line py-1 pr-1 pl-3 font-mono text-xs text-ink-2">
        <span>{name || "text"}</span>
        <CopyButton text={code} label="Copy code" />
      </figcaption>
      <pre
        className="overflow-x-auto p-3 font-mono text-[0.85em] leading-relaxed"
        tabIndex={0}
        role="group"
        aria-label="Code"
      >
        <code>
          {pieces.map(({ text, scope }, index) => (
            <span key={index} className={HUES.find(([pattern]) => scope !== undefined && pattern.test(scope))?.[1]}>
              {text}
            </span>
          ))}
          {rest}
        </code>
      </pre>
    </figure>
  );
}

/** Code that grows keeps its colours. Its new end is plain for a moment. */
function useHighlighted(code: string, language: string): { pieces: Piece[]; rest: string } {
  const [found, setFound] = useState<{ code: string; pieces: Piece[] }>({ code: "", pieces: [] });
  useEffect(() => {
    let isWanted = true;
    highlight(code, language)
      .then((pieces) => isWanted && pieces !== undefined && setFound({ code, pieces }))
      .catch(() => {}); // without colours, then
    return () => {
      isWanted = false;
    };
  }, [code, language]);
  if (!code.startsWith(found.code)) return { pieces: [], rest: code };
  return { pieces: found.pieces, rest: code.slice(found.code.length) };
}
