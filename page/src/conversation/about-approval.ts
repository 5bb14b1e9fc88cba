/** What people are told about an approval besides the call itself, in the chat and in the inbox. */
import type { UIMessage } from "ai";
import { isRecord } from "../is-record.ts";
import type { ToolPart } from "./parts.ts";

export interface CardField {
  label: string;
  value: unknown;
  format: string;
}

/** How the application wants the question to look. */
export interface Card {
  title?: string;
  icon?: string;
  colour?: string;
  severity?: string;
  fields: CardField[];
  link?: string;
}

export interface ChainLink {
  /** User ids, and groups as `group:name`. */
  approvers: string[];
  status: string;
  by?: string;
  at?: string;
  reason?: string;
}

/** Any of it may be missing. */
export interface AboutApproval {
  id?: string;
  hint?: string;
  payload?: unknown;
  /** The JSON Schema of what an approver may change. */
  edits?: Record<string, unknown>;
  deadline?: string;
  card?: Card;
  /** Where others than the chat's owner decide, too: how far they are. */
  status?: string;
  chain?: ChainLink[];
}

/** Of a call's approval. Where others decide, nothing in the call names it: then it names the call. */
export function aboutApproval({ parts }: UIMessage, { toolCallId, approval }: ToolPart): AboutApproval {
  for (const part of parts) {
    if (part.type !== "data-adk-approval" || !("data" in part) || !isRecord(part.data)) continue;
    const isIt = approval === undefined ? part.data.toolCallId === toolCallId : part.id === approval.id;
    if (isIt) return { ...readAbout(part.data), ...(part.id !== undefined && { id: part.id }) };
  }
  return approval === undefined ? {} : { ...readAbout(approval.descriptor), id: approval.id };
}

export function readAbout(about: unknown): AboutApproval {
  if (!isRecord(about)) return {};
  const { hint, payload, edits, deadline, card, status, chain } = about;
  return {
    ...texts({ hint, deadline, status }),
    ...(payload !== undefined && payload !== null && { payload }),
    ...(isRecord(edits) && { edits }),
    ...(isRecord(card) && { card: readCard(card) }),
    ...(Array.isArray(chain) && { chain: chain.filter(isRecord).map(readLink) }),
  };
}

function readCard({ title, icon, colour, severity, fields, link }: Record<string, unknown>): Card {
  const listed = Array.isArray(fields) ? fields.filter(isRecord) : [];
  return {
    ...texts({ title, icon, colour, severity, link }),
    fields: listed.map(({ label, value, format }) => ({
      label: typeof label === "string" ? label : "",
      value,
      format: typeof format === "string" ? format : "text",
    })),
  };
}

function readLink({ approvers, status, by, at, reason }: Record<string, unknown>): ChainLink {
  const named = Array.isArray(approvers) ? approvers.filter((approver) => typeof approver === "string") : [];
  return { approvers: named, status: String(status), ...texts({ by, at, reason }) };
}

/** Those that are texts, and not empty. */
function texts<Name extends string>(fields: Record<Name, unknown>): { [name in Name]?: string } {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => typeof value === "string" && value !== ""),
  ) as { [name in Name]?: string };
}

/** "group:managers", "eva" -> "one of managers, or eva". */
export function approverWords(approvers: string[]): string {
  return approvers.map((name) => name.replace(/^group:/, "one of ")).join(", or ");
}
