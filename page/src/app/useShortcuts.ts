/** Keys of the page. None of them can answer an approval. */
import { type RefObject, useEffect, useRef } from "react";
import { isEditable } from "../is-editable.ts";

export interface Shortcuts {
  composer: RefObject<HTMLElement | null>;
  onInspect(): void;
  /** Undefined while there is nothing to stop. */
  onStop: (() => void) | undefined;
}

export function useShortcuts(shortcuts: Shortcuts): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const { composer, onInspect, onStop } = latest.current;
      if (event.defaultPrevented || event.isComposing) return;
      const isElsewhere = isEditable(event.target) && event.target !== composer.current;
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "i") {
        event.preventDefault();
        onInspect();
      } else if (document.querySelector("dialog[open], :popover-open") !== null) {
        return;
      } else if (event.key === "Escape" && onStop !== undefined && !isElsewhere) {
        event.preventDefault();
        onStop();
      } else if (event.key === "/" && isPlain && !isEditable(event.target)) {
        event.preventDefault();
        composer.current?.focus();
      }
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}
