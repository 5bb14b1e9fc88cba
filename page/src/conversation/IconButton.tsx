import type { ReactNode } from "react";

export function IconButton(props: { label: string; onClick(): void; children: ReactNode }) {
  return (
    <button
      type="button"
      aria-label={props.label}
      title={props.label}
      onClick={props.onClick}
      className="grid size-7 place-items-center rounded-md text-ink-2 hover:bg-paper-2 hover:text-ink"
    >
      {props.children}
    </button>
  );
}
