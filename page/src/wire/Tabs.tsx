import type { KeyboardEvent } from "react";

/** A list of tabs: one is reached by the Tab key, the others by the arrows. */
export function Tabs<T extends string>(props: { names: readonly T[]; chosen: NoInfer<T>; onChoose(name: NoInfer<T>): void }) {
  const { names, chosen, onChoose } = props;
  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    const here = names.indexOf(chosen);
    const places: Record<string, number> = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: -1 };
    const place = places[event.key];
    const next = place === undefined ? undefined : names.at(place % names.length);
    if (next === undefined) return;
    event.preventDefault();
    onChoose(next);
    event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")[names.indexOf(next)]?.focus();
  };
  return (
    <div role="tablist" aria-label="Inspector" className="flex flex-wrap gap-0.5" onKeyDown={move}>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={tabId(name)}
          aria-selected={name === chosen}
          aria-controls={name === chosen ? panelId(name) : undefined}
          tabIndex={name === chosen ? 0 : -1}
          onClick={() => onChoose(name)}
          className="rounded-md px-1.5 py-1 text-[13px] text-ink-2 hover:text-ink aria-selected:bg-paper-2 aria-selected:font-medium aria-selected:text-ink"
        >
          {name}
        </button>
      ))}
    </div>
  );
}

export const tabId = (name: string) => `inspector-tab-${name.toLowerCase()}`;
export const panelId = (name: string) => `inspector-panel-${name.toLowerCase()}`;
