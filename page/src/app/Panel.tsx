/** A column beside the conversation; where there is no room for one, a drawer over it. */
import { type ReactNode, useEffect, useRef } from "react";

interface PanelProps {
  /** Leave it out where the content is itself a region with a name. */
  label?: string;
  side: "left" | "right";
  hasRoom: boolean;
  isOpen: boolean;
  onClose(): void;
  /** The width of the column, as a class. */
  width: string;
  className: string;
  children: ReactNode;
}

export function Panel({ label, side, hasRoom, isOpen, onClose, width, className, children }: PanelProps) {
  if (!isOpen) return null;
  const line = side === "left" ? "border-r" : "border-l";
  const Column = label === undefined ? "div" : "aside";
  if (hasRoom)
    return (
      <Column aria-label={label} className={`flex min-h-0 shrink-0 flex-col border-line ${line} ${width} ${className}`}>
        {children}
      </Column>
    );
  return (
    <Drawer
      label={label}
      onClose={onClose}
      className={`${side === "left" ? "mr-auto" : "ml-auto"} ${line} ${className}`}
    >
      {children}
    </Drawer>
  );
}

/** The browser's own modal dialog: it keeps the focus, and Escape closes it. */
function Drawer({
  label,
  onClose,
  className,
  children,
}: Pick<PanelProps, "label" | "onClose" | "className" | "children">) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      aria-label={label ?? "Drawer"}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
      className={`my-0 h-dvh max-h-none w-[min(24rem,90vw)] max-w-none border-line text-ink backdrop:bg-black/40 ${className}`}
    >
      <div className="flex h-full min-h-0 flex-col">{children}</div>
    </dialog>
  );
}
