/** Text that a person decides on, with its invisible characters marked. */
import { CircleAlert } from "lucide-react";
import { hasInvisible, pieces } from "./invisible.ts";

export function Marked({ text }: { text: string }) {
  return pieces(text).map((piece, index) =>
    typeof piece === "string" ? (
      piece
    ) : (
      <span
        key={index}
        role="img"
        aria-label={`invisible character ${piece.number}`}
        title={`Invisible character ${piece.number}`}
        className="mx-px rounded-sm border border-error bg-error-paper px-1 font-mono text-xs text-error"
      >
        {piece.number}
      </span>
    ),
  );
}

export function InvisibleWarning({ shown }: { shown: unknown }) {
  if (!hasInvisible(shown)) return null;
  return (
    <p className="flex items-center gap-2 font-medium text-error">
      <CircleAlert size={16} aria-hidden className="shrink-0" /> Contains invisible characters
    </p>
  );
}
