/** Every chunk and frame with its time; those of the same sort in a row are one line. */
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { FAMILY_COLOUR } from "./colours.ts";
import { countOf, type Row, shownJson, summaryOf } from "./rows.ts";

/** More lines than this are drawn only when asked for. */
const PAGE = 300;
/** Chunks of a folded line that are shown one by one. */
const MAX_UNFOLDED = 50;
/** Nearer to its end than this, the list follows what comes. */
const NEAR_END_PX = 40;

export function ChunkList({ rows }: { rows: Row[] }) {
  const [shown, setShown] = useState(PAGE);
  const [opened, setOpened] = useState<number>();
  const list = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const box = list.current;
    const scrolled = () => {
      if (box !== null) follows.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX;
    };
    box?.addEventListener("scroll", scrolled, { passive: true });
    return () => box?.removeEventListener("scroll", scrolled);
  }, []);
  useLayoutEffect(() => {
    if (follows.current && opened === undefined) list.current?.scrollTo({ top: list.current.scrollHeight });
  });
  const hidden = Math.max(0, rows.length - shown);
  return (
    <div ref={list} tabIndex={0} role="group" aria-label="Chunks" className="min-h-0 flex-1 overflow-y-auto py-1">
      {rows.length === 0 && <p className="px-4 py-3 text-sm text-ink-2">Nothing has gone over the wire yet.</p>}
      {hidden > 0 && (
        <button type="button" className="px-4 py-1 text-sm underline" onClick={() => setShown(shown + PAGE)}>
          Show earlier ones ({hidden})
        </button>
      )}
      <ol className="font-mono text-xs">
        {rows.slice(hidden).map((row) => (
          <ChunkRow
            key={row.first.seq}
            row={row}
            isOpen={row.first.seq === opened}
            onToggle={() => setOpened(row.first.seq === opened ? undefined : row.first.seq)}
          />
        ))}
      </ol>
    </div>
  );
}

function ChunkRow({ row, isOpen, onToggle }: { row: Row; isOpen: boolean; onToggle(): void }) {
  const { first, entries } = row;
  const count = countOf(row);
  const time = first.askedAt === undefined ? first.direction : `+${Math.round(first.at - first.askedAt)}`;
  return (
    <li>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={onToggle}
        className="flex w-full items-center gap-2.5 px-3 py-1 text-left hover:bg-paper-2"
      >
        <span className="w-14 shrink-0 text-right text-ink-2">{time}</span>
        <span className={`h-4 w-1 shrink-0 rounded-full ${FAMILY_COLOUR[first.family]}`} />
        <span className="shrink-0 font-medium">{first.type}</span>
        <span className="min-w-0 flex-1 truncate text-ink-2">{summaryOf(row)}</span>
        {count > 1 && <span className="shrink-0 text-ink-2">×{count}</span>}
      </button>
      {isOpen && (
        <pre tabIndex={0} className="mx-3 mb-1 max-h-80 overflow-auto rounded-md bg-paper-2 p-2.5 whitespace-pre-wrap">
          {entries.length === 1
            ? shownJson(first.data)
            : entries
                .slice(0, MAX_UNFOLDED)
                .map(({ data }) => JSON.stringify(data))
                .join("\n")}
          {entries.length > MAX_UNFOLDED && `\n… and ${entries.length - MAX_UNFOLDED} more`}
        </pre>
      )}
    </li>
  );
}
