/** The browser tools of the agent that is open, as the server tells them. */
import { isRecord } from "../is-record.ts";
import { told } from "../told.ts";

export interface AgentTool {
  name: string;
  description: string;
  /** The JSON schema of its output, if it has one. */
  output: unknown;
}

let known: { text: string; tools: AgentTool[] | undefined } = { text: "", tools: undefined };

/** Undefined where the server does not tell them, as with a recording. */
export function agentTools(): AgentTool[] | undefined {
  const text = told("adk-browser-tools");
  if (text !== known.text) known = { text, tools: text === "" ? undefined : readTools(JSON.parse(text)) };
  return known.tools;
}

function readTools(listed: unknown): AgentTool[] {
  return (Array.isArray(listed) ? listed : []).filter(isRecord).map(({ name, description, output }) => ({
    name: String(name),
    description: typeof description === "string" ? description : "",
    output: output ?? undefined,
  }));
}
