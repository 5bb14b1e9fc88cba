import { AudioLines } from "lucide-react";
import { Markdown } from "./Markdown.tsx";

/** What the model says aloud. `spoken`: how many characters of it were heard, if it was interrupted. */
export function Spoken({
  text,
  isStreaming,
  spoken,
}: {
  text: string;
  isStreaming: boolean;
  spoken: number | undefined;
}) {
  return (
    <div className="grid grid-cols-[auto_minmax(0,1fr)] gap-2">
      <AudioLines size={16} role="img" aria-label="Spoken" className="mt-1 text-audio" />
      {spoken === undefined || spoken >= text.length ? (
        <Markdown text={text} isStreaming={isStreaming} />
      ) : (
        <p className="whitespace-pre-wrap">
          {text.slice(0, spoken)}
          <del className="text-ink-2">
            <span className="sr-only">Not spoken: </span>
            {text.slice(spoken)}
          </del>
        </p>
      )}
    </div>
  );
}

/** How much was heard of each text, in whole words, if `share` of all of them was played. */
export function spokenLengths(texts: string[], share: number): number[] {
  let left = Math.round(texts.join("").length * Math.min(1, Math.max(0, share)));
  return texts.map((text) => {
    const heard = Math.min(left, text.length);
    left -= heard;
    if (heard === 0 || heard === text.length) return heard;
    const end = text.indexOf(" ", heard);
    return end === -1 ? text.length : end;
  });
}
