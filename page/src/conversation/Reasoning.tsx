import { ChevronRight } from "lucide-react";
import { useState } from "react";
import { Markdown } from "./Markdown.tsx";

/** Open while it is written, folded afterwards; whoever opens or folds it has the last word. */
export function Reasoning({ text, isStreaming }: { text: string; isStreaming: boolean }) {
  const [chosen, setChosen] = useState<boolean>();
  const isOpen = chosen ?? isStreaming;
  return (
    <details open={isOpen}>
      <summary
        className="flex w-fit list-none items-center gap-1.5 rounded text-ink-2 hover:text-ink"
        onClick={(event) => {
          event.preventDefault();
          setChosen(!isOpen);
        }}
      >
        <ChevronRight size={16} aria-hidden className={isOpen ? "rotate-90" : ""} />
        {isStreaming ? "Thinking…" : "Thought it through"}
      </summary>
      <div className="mt-2 border-l-2 border-reasoning pl-3 text-ink-2">
        <Markdown text={text} isStreaming={isStreaming} />
      </div>
    </details>
  );
}
