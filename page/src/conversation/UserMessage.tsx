/** What the user has written, said or attached, and the editor for it. */
import type { UIMessage } from "ai";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { useActions } from "./actions.ts";
import { Button } from "./Button.tsx";
import { FilePart } from "./FilePart.tsx";
import { textOf } from "./parts.ts";

export interface UserMessageProps {
  message: UIMessage;
  isEditing: boolean;
  onDone(): void;
}

export function UserMessage({ message, isEditing, onDone }: UserMessageProps) {
  if (isEditing) return <Editor message={message} onDone={onDone} />;
  const text = textOf(message);
  const isHeard = message.parts.some((part) => part.type === "text" && part.state === "streaming");
  return (
    <div className="ml-auto grid max-w-[85%] justify-items-end gap-2">
      {message.parts.map((part, index) => part.type === "file" && <FilePart key={index} file={part} />)}
      {text !== "" && (
        <p
          className={`rounded-2xl rounded-br-sm border px-4 py-2.5 whitespace-pre-wrap ${
            isHeard ? "border-audio text-ink" : "border-ink bg-ink text-paper"
          }`}
        >
          {text}
          {isHeard && (
            <span role="img" aria-label="still listening" className="text-audio">
              {" …"}
            </span>
          )}
        </p>
      )}
    </div>
  );
}

function Editor({ message, onDone }: { message: UIMessage; onDone(): void }) {
  const { onEdit } = useActions();
  const [text, setText] = useState(() => textOf(message));
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []); // somebody has just pressed Edit
  const send = () => {
    if (text.trim() === "") return;
    onDone();
    onEdit(message.id, text);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      onDone();
    }
  };
  return (
    <form
      className="ml-auto grid w-full max-w-[85%] gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={field}
        aria-label="Edited text"
        value={text}
        rows={Math.min(10, Math.max(2, text.split("\n").length))}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        className="rounded-2xl rounded-br-sm border border-line-strong bg-card px-4 py-2.5"
      />
      <div className="flex flex-wrap items-center justify-end gap-2">
        <p className="mr-auto text-sm text-ink-2">Everything after this message is removed.</p>
        <Button kind="quiet" onClick={onDone}>
          Cancel
        </Button>
        <Button kind="main" type="submit" disabled={text.trim() === ""}>
          Ask again
        </Button>
      </div>
    </form>
  );
}
