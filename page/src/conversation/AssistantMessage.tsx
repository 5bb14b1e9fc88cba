/** What the agent says and does: one row for each part, with the ticks of its chunks beside it. */
import type { UIMessage } from "ai";
import type { ReactNode } from "react";
import { partKeys } from "../wire/parts.ts";
import { aboutApproval } from "./about-approval.ts";
import { callThatAsksConsent, dataPart } from "./DataPart.tsx";
import { FilePart, type FileLike } from "./FilePart.tsx";
import { Markdown } from "./Markdown.tsx";
import { adkMetadata, cardId, messageNotes, type Part, toolPart } from "./parts.ts";
import { Reasoning } from "./Reasoning.tsx";
import { isSource, Sources } from "./Sources.tsx";
import { Spoken, spokenLengths } from "./Spoken.tsx";
import { ToolCard } from "./ToolCard.tsx";
import { humanise, limitSentence } from "./words.ts";

export interface AssistantMessageProps {
  message: UIMessage;
  isStreaming: boolean;
  hasFailed: boolean;
  gutter(messageId: string, partKey: string): ReactNode;
  /** How much of an interrupted message's voice was played, from 0 to 1. */
  spokenShare: number | undefined;
}

interface Row {
  key: string;
  partKey: string | undefined;
  author: string | undefined;
  content: ReactNode;
}

export function AssistantMessage(props: AssistantMessageProps) {
  const { message, gutter } = props;
  const notes = messageNotes(message);
  return (
    <>
      {byAuthor(rowsOf(props)).map(({ author, rows }, index) => (
        <div
          key={index}
          className="grid grid-cols-[minmax(0,1fr)] gap-4"
          role={author && "group"}
          aria-label={author && humanise(author)}
        >
          {author !== undefined && (
            <p aria-hidden className="pl-9 text-sm font-medium text-ink-2">
              {humanise(author)}
            </p>
          )}
          {rows.map(({ key, partKey, content }) => (
            <div key={key} className="grid grid-cols-[1.5rem_minmax(0,1fr)] gap-x-3">
              <div className="relative">
                {/* As many ticks as there is room for: they must not make the row higher than its part. */}
                <div className="absolute inset-0">{partKey !== undefined && gutter(message.id, partKey)}</div>
              </div>
              <div className="min-w-0">{content}</div>
            </div>
          ))}
        </div>
      ))}
      {isInterrupted(props) && !props.isStreaming && <p className="pl-9 text-sm text-audio">Interrupted</p>}
      {typeof notes.limit === "string" && <p className="pl-9 text-sm text-approval">{limitSentence(notes.limit)}</p>}
    </>
  );
}

function rowsOf(props: AssistantMessageProps): Row[] {
  const { parts } = props.message;
  const keys = partKeys(parts);
  const spoken = spokenOf(props);
  const rows = parts.flatMap((part, index): Row[] => {
    const content = contentOf(part, props, spoken.get(part));
    if (content === undefined) return [];
    const key = keys[index] ?? `${part.type}:${index}`;
    return [{ key, partKey: keys[index], author: adkMetadata(part).author, content }];
  });
  const sources = parts.filter(isSource);
  const first = keys[parts.findIndex(isSource)];
  if (first !== undefined)
    rows.push({ key: "sources", partKey: first, author: undefined, content: <Sources sources={sources} /> });
  return rows;
}

/** Undefined for parts that are not shown. */
function contentOf(part: Part, props: AssistantMessageProps, spoken: number | undefined): ReactNode {
  const { message, hasFailed } = props;
  const isStreaming = props.isStreaming && "state" in part && part.state === "streaming";
  const tool = toolPart(part);
  if (tool !== undefined) {
    const about = aboutApproval(message, tool);
    const id = cardId(message.id, tool.toolCallId);
    const needsConsent = message.parts.some((other) => callThatAsksConsent(other) === tool.toolCallId);
    return (
      <ToolCard
        id={id}
        tool={tool}
        about={about}
        isStreaming={props.isStreaming}
        hasFailed={hasFailed}
        needsConsent={needsConsent}
      />
    );
  }
  switch (part.type as string) {
    case "text": {
      const { text } = part as { text: string };
      const { transcript, replaced } = adkMetadata(part);
      if (text === "") return undefined;
      if (replaced) return <Replaced text={text} />;
      if (transcript) return <Spoken text={text} isStreaming={isStreaming} spoken={spoken} />;
      return <Markdown text={text} isStreaming={isStreaming} />;
    }
    case "reasoning": {
      const { text } = part as { text: string };
      return text === "" && !isStreaming ? undefined : <Reasoning text={text} isStreaming={isStreaming} />;
    }
    case "file":
    case "reasoning-file":
      return <FilePart file={part as FileLike} />;
    default:
      return isConsentGiven(part, message.parts) ? undefined : dataPart(part);
  }
}

function isConsentGiven(part: Part, parts: Part[]): boolean {
  const call = callThatAsksConsent(part);
  if (call === undefined) return false;
  return parts.some((other) => {
    const tool = toolPart(other);
    return tool?.toolCallId === call && tool.state.startsWith("output-") && !tool.isPreliminary;
  });
}

/** A callback of the agent's has replaced this text after it was streamed. */
function Replaced({ text }: { text: string }) {
  return (
    <details>
      <summary className="w-fit text-sm text-ink-2">Replaced by the text below</summary>
      <div className="mt-2 text-ink-2">
        <Markdown text={text} />
      </div>
    </details>
  );
}

/** Models write faster than they speak: a message may be whole on the server, and cut short for those who listen. */
function isInterrupted({ message, spokenShare }: AssistantMessageProps): boolean {
  return messageNotes(message).interrupted === true || (spokenShare !== undefined && spokenShare < 1);
}

function spokenOf(props: AssistantMessageProps): Map<Part, number> {
  const { message, spokenShare } = props;
  if (spokenShare === undefined || !isInterrupted(props)) return new Map();
  const said = message.parts.filter((part) => part.type === "text" && adkMetadata(part).transcript);
  const lengths = spokenLengths(
    said.map((part) => (part as { text: string }).text),
    spokenShare,
  );
  return new Map(said.map((part, index) => [part, lengths[index]!]));
}

/** Neighbours of one author are a group. Rows of the root agent have no author: they are just the answer. */
function byAuthor(rows: Row[]): { author: string | undefined; rows: Row[] }[] {
  const groups: { author: string | undefined; rows: Row[] }[] = [];
  for (const row of rows) {
    const last = groups.at(-1);
    if (last !== undefined && last.author === row.author) last.rows.push(row);
    else groups.push({ author: row.author, rows: [row] });
  }
  return groups;
}
