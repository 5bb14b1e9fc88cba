/** Beside a part: one tick for each chunk that built it, more and more while it is streamed. */
import { useSyncExternalStore } from "react";
import { FAMILY_COLOUR } from "./colours.ts";
import type { WireLog } from "./log.ts";
import type { Picked } from "./rows.ts";

const NARROW = new Set(["text", "reasoning"]);

export function PartTicks(props: { log: WireLog; messageId: string; partKey: string; onPick(picked: Picked): void }) {
  const { log, messageId, partKey, onPick } = props;
  const count = useSyncExternalStore(log.subscribe, () => log.part(messageId, partKey)?.count ?? 0);
  if (count === 0) return null;
  const label = `${count} ${count === 1 ? "chunk" : "chunks"} built this part: show`;
  const families = log.part(messageId, partKey)?.families ?? [];
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      onClick={() => onPick({ messageId, partKey })}
      className="flex max-h-full min-h-6 w-6 flex-col items-start gap-px overflow-hidden rounded-sm py-1 opacity-80 hover:opacity-100"
    >
      {families.map((family, place) => (
        <span
          // Ticks have no identity but their place.
          key={place}
          className={`h-0.5 shrink-0 rounded-full ${NARROW.has(family) ? "w-2.5" : "w-5"} ${FAMILY_COLOUR[family]}`}
        />
      ))}
    </button>
  );
}
