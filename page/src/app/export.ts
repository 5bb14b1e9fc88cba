/** A conversation as a file: Markdown for people, JSON (`UIMessage[]`) for programs. */
import type { UIMessage } from "ai";
import { type Part, toolPart } from "../conversation/parts.ts";
import { isRecord } from "../is-record.ts";
import { saveFile, timeForName } from "../save-file.ts";

export type Format = "markdown" | "json";

export interface Exported {
  messages: UIMessage[];
  title: string;
  agent: string;
}

export function exportConversation(conversation: Exported, format: Format): void {
  const name = `chat-${timeForName()}`;
  if (format === "markdown") saveFile(`${name}.md`, "text/markdown", asMarkdown(conversation));
  else saveFile(`${name}.json`, "application/json", `${JSON.stringify(conversation.messages, null, 2)}\n`);
}

export function asMarkdown({ messages, title, agent }: Exported): string {
  const said = messages.flatMap(({ role, parts }) => {
    if (role === "system") return [];
    return [`## ${role === "user" ? "You" : agent || "Agent"}`, ...parts.flatMap(partAsMarkdown)];
  });
  return `${[`# ${inLine(title)}`, ...said].join("\n\n")}\n`;
}

function partAsMarkdown(part: Part): string[] {
  const tool = toolPart(part);
  if (tool !== undefined) {
    const { toolName, state, input, output, errorText, approval } = tool;
    const decision = approval?.approved === undefined ? undefined : approval.approved ? "approved" : "denied";
    const reason = approval?.reason ? `: ${inLine(approval.reason)}` : "";
    const notes = [state, decision && `${decision}${reason}`].filter(Boolean).join(", ");
    return [
      `**${inLine(toolName)}** (${notes})`,
      ...(input === undefined ? [] : [fenced(input)]),
      ...(output === undefined ? [] : ["Result:", fenced(output)]),
      ...(errorText === undefined ? [] : [`Error: ${inLine(errorText)}`]),
    ];
  }
  switch (part.type as string) {
    case "text":
      return words(part) === "" ? [] : [words(part)];
    case "reasoning":
      return words(part) === "" ? [] : [words(part).replaceAll(/^/gm, "> ")];
    case "file":
    case "reasoning-file": {
      const { url, filename, mediaType } = part as { url: string; filename?: string; mediaType: string };
      const name = inLine(filename ?? mediaType);
      return [url.startsWith("data:") ? `File: ${name}` : `File: [${name}](<${new URL(url, document.baseURI).href}>)`];
    }
    case "source-url": {
      const { url, title } = part as { url: string; title?: string };
      return [`Source: [${inLine(title ?? url)}](<${url.replaceAll(">", "%3E")}>)`];
    }
    case "data-adk-agent":
      return "data" in part && isRecord(part.data) ? [`*${inLine(String(part.data.agent))} goes on*`] : [];
    default:
      return [];
  }
}

function words(part: Part): string {
  return (part as { text: string }).text.trim();
}

/** In a fence that is longer than any inside. */
function fenced(value: unknown): string {
  const text = JSON.stringify(value, null, 2);
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}json\n${text}\n${fence}`;
}

/** Text that must stay on its line, and mean nothing to Markdown. */
function inLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(/[\\`*_[\]<>#]/g, "\\$&");
}
