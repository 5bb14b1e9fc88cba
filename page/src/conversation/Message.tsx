import type { UIMessage } from "ai";
import { Pencil, RotateCcw } from "lucide-react";
import { memo, type ReactNode, useState } from "react";
import { useActions } from "./actions.ts";
import { AssistantMessage } from "./AssistantMessage.tsx";
import { CopyButton } from "./CopyButton.tsx";
import { IconButton } from "./IconButton.tsx";
import { textOf } from "./parts.ts";
import { UserMessage } from "./UserMessage.tsx";

export interface MessageProps {
  message: UIMessage;
  isLast: boolean;
  isStreaming: boolean;
  hasFailed: boolean;
  /** Nothing that was said in a live session can be taken back. */
  mayChange: boolean;
  gutter(messageId: string, partKey: string): ReactNode;
  spokenShare: number | undefined;
}

export const Message = memo(function Message(props: MessageProps) {
  const { message, isStreaming, mayChange } = props;
  const { onRegenerate } = useActions();
  const [isEditing, setIsEditing] = useState(false);
  if (message.role === "system") return null;
  const isUser = message.role === "user";
  const text = textOf(message);
  return (
    <article
      className="grid grid-cols-[minmax(0,1fr)] gap-4"
      aria-label={isUser ? "You" : "Agent"}
      aria-busy={isStreaming}
    >
      <h2 className="sr-only">{isUser ? "You" : "The agent"}</h2>
      {isUser ? (
        <UserMessage message={message} isEditing={isEditing && mayChange} onDone={() => setIsEditing(false)} />
      ) : (
        <AssistantMessage {...props} />
      )}
      {!isStreaming && !isEditing && (
        <div className={`-mt-2 flex gap-1 ${isUser ? "justify-end" : "pl-8"}`}>
          {text !== "" && <CopyButton text={text} label="Copy" />}
          {isUser && mayChange && text !== "" && (
            <IconButton label="Edit" onClick={() => setIsEditing(true)}>
              <Pencil size={14} aria-hidden />
            </IconButton>
          )}
          {!isUser && mayChange && props.isLast && (
            <IconButton label="Regenerate" onClick={() => onRegenerate(message.id)}>
              <RotateCcw size={14} aria-hidden />
            </IconButton>
          )}
        </div>
      )}
    </article>
  );
});
