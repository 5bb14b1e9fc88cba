/** Where the person writes. Enter sends, Shift+Enter begins a new line. */
import { ArrowUp, Paperclip, Square } from "lucide-react";
import { type ReactNode, type RefObject, useRef, useState } from "react";
import { AttachedFiles } from "./AttachedFiles.tsx";

interface ComposerProps {
  field: RefObject<HTMLTextAreaElement | null>;
  files: File[];
  /** Why a file was not attached. */
  problem: string | undefined;
  isBusy: boolean;
  onAttach(files: File[]): void;
  onRemove(file: File): void;
  onSend(text: string): void;
  onStop(): void;
  /** Above the text: the microphone of a live session. */
  children?: ReactNode;
}

export function Composer({
  field,
  files,
  problem,
  isBusy,
  onAttach,
  onRemove,
  onSend,
  onStop,
  children,
}: ComposerProps) {
  const [text, setText] = useState("");
  const picker = useRef<HTMLInputElement>(null);
  const canSend = !isBusy && (text.trim() !== "" || files.length > 0);
  const send = () => {
    if (!canSend) return;
    onSend(text.trim());
    setText("");
  };
  return (
    <form
      className="rounded-xl border border-line-strong bg-card has-[textarea:focus]:border-focus has-[textarea:focus]:ring-1 has-[textarea:focus]:ring-focus"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {children}
      <AttachedFiles files={files} onRemove={onRemove} />
      {problem && (
        <p role="alert" className="px-4 pt-2 text-sm text-error">
          {problem}
        </p>
      )}
      <textarea
        ref={field}
        aria-label="Message"
        placeholder="Type your message..."
        rows={1}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          // Where an input method writes Japanese, Enter may only end a word.
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          send();
        }}
        onPaste={(event) => {
          const pasted = [...event.clipboardData.files];
          if (pasted.length === 0) return;
          event.preventDefault();
          onAttach(pasted);
        }}
        className="field-sizing-content block max-h-48 min-h-11 w-full resize-none bg-transparent px-4 pt-3 pb-1 outline-none"
      />
      <div className="flex items-center gap-1 px-2 pb-2">
        <button
          type="button"
          aria-label="Attach"
          title="Attach files"
          className="rounded-lg p-2 text-ink-2 hover:bg-paper-2 hover:text-ink"
          onClick={() => picker.current?.click()}
        >
          <Paperclip size={17} aria-hidden />
        </button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Attach files"
          onChange={(event) => {
            onAttach([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
        <span className="ml-auto" />
        {isBusy ? (
          <button type="button" aria-label="Stop" title="Stop (Esc)" className={MAIN_BUTTON} onClick={onStop}>
            <Square size={14} fill="currentColor" aria-hidden />
          </button>
        ) : (
          <button type="submit" aria-label="Send" title="Send (Enter)" disabled={!canSend} className={MAIN_BUTTON}>
            <ArrowUp size={18} aria-hidden />
          </button>
        )}
      </div>
    </form>
  );
}

const MAIN_BUTTON =
  "grid size-9 place-items-center rounded-lg bg-ink text-paper disabled:bg-paper-2 disabled:text-ink-2";
