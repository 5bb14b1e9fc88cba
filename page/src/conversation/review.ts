/** The way to a card that waits: Alt+R. */
import { useEffect } from "react";

export function showCard(card: string): void {
  const element = document.getElementById(card);
  element?.scrollIntoView({ block: "center" });
  element?.focus({ preventScroll: true });
}

/** `card`: the id of the first one that waits. */
export function useReviewKey(card: string | undefined): void {
  useEffect(() => {
    if (card === undefined) return;
    const onKeyDown = (event: KeyboardEvent) => {
      if (!event.altKey || event.ctrlKey || event.metaKey || !isR(event)) return;
      event.preventDefault();
      showCard(card);
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [card]);
}

/** With Alt some keyboards write a sign that is no letter: then the key's place counts. */
function isR({ key, code }: KeyboardEvent): boolean {
  return /^[a-z]$/i.test(key) ? key.toLowerCase() === "r" : code === "KeyR";
}
