/** Saves the conversation as a file. */
import { Download } from "lucide-react";
import { type MouseEvent, useRef } from "react";
import type { Exported, Format } from "./export.ts";

const FORMATS: [Format, string][] = [
  ["markdown", "Markdown"],
  ["json", "JSON"],
];

export function ExportMenu(props: Exported) {
  const menu = useRef<HTMLDivElement>(null);
  /** Below its button: not all browsers can say that in CSS. */
  const place = ({ currentTarget }: MouseEvent<HTMLElement>) => {
    const { bottom, right } = currentTarget.getBoundingClientRect();
    Object.assign(menu.current!.style, { top: `${bottom + 4}px`, right: `${innerWidth - right}px` });
  };
  const save = async (format: Format) => {
    menu.current?.hidePopover();
    const { exportConversation } = await import("./export.ts");
    exportConversation(props, format);
  };
  return (
    <>
      <button
        type="button"
        aria-label="Export"
        title="Export this chat"
        popoverTarget="export"
        onClick={place}
        disabled={props.messages.length === 0}
        className="shrink-0 rounded-lg p-2 text-ink-2 hover:bg-paper-2 hover:text-ink disabled:opacity-40"
      >
        <Download size={17} aria-hidden />
      </button>
      {/* The browser's own popover: Escape and clicks beside it close it. */}
      <div
        id="export"
        ref={menu}
        popover="auto"
        role="group"
        aria-label="Export as"
        className="fixed inset-auto m-0 rounded-lg border border-line-strong bg-card p-1 text-ink shadow"
      >
        {FORMATS.map(([format, name]) => (
          <button
            key={format}
            type="button"
            onClick={() => void save(format)}
            className="block w-full rounded-md px-3 py-1.5 text-left text-sm hover:bg-paper-2"
          >
            Save as {name}
          </button>
        ))}
      </div>
    </>
  );
}
