/** The way to a card that waits: Alt+R. */
import { useEffect, useRef } from "react";

export function showCard(card: string): void {
  const element = document.getElementById(card);
  element?.scrollIntoView({ block: "center" });
  element?.focus({ preventScroll: true });
}

/** Who presses it right after sending is led to the card when it comes, if that is soon. */
const AWAITED_MS = 15_000;

/** `card`: the id of the first one that waits. Whatever else the person does ends the wait for the first one. */
export function useReviewKey(card: string | undefined): void {
  const askedAt = useRef(-Infinity);
  useEffect(() => {
    if (card !== undefined && performance.now() - askedAt.current < AWAITED_MS) showCard(card);
    forget();
    const onKeyDown = (event: KeyboardEvent) => {
      // The Alt key itself comes before what is pressed with it.
      if (event.key === "Alt") return;
      forget();
      if (!event.altKey || event.ctrlKey || event.metaKey || !isR(event)) return;
      event.preventDefault();
      if (card === undefined) askedAt.current = performance.now();
      else showCard(card);
    };
    function forget() {
      askedAt.current = -Infinity;
    }
    window.addEventListener("keydown", onKeyDown);
    window.addEventListener("pointerdown", forget);
    return () => {
      window.removeEventListener("keydown", onKeyDown);
      window.removeEventListener("pointerdown", forget);
    };
  }, [card]);
}

/** With Alt some keyboards write a sign that is no letter: then the key's place counts. */
function isR({ key, code }: KeyboardEvent): boolean {
  return /^[a-z]$/i.test(key) ? key.toLowerCase() === "r" : code === "KeyR";
}
