/** What messages of adk-stream-protocol hold, for `useChat<AdkUIMessage>` and `Chat<AdkUIMessage>`. */
import type { UIMessage, UITools } from "ai";

/**
 * A message with the parts and the metadata that the server adds. Name your browser tools as in
 * `AdkUIMessage<{ get_location: { input: { precise: boolean }; output: Place } }>`, and `addToolOutput` is typed.
 */
export type AdkUIMessage<TOOLS extends UITools = UITools> = UIMessage<AdkMetadata, AdkDataParts, TOOLS>;

/** `message.metadata`, from the end of an answer on. */
export type AdkMetadata = {
  /** Sums over the model calls of the answer. */
  usage?: {
    inputTokens: number;
    outputTokens: number;
    totalTokens: number;
    reasoningTokens?: number;
    cachedInputTokens?: number;
  };
  modelVersion?: string;
  /** The limit of the server that ended the answer. */
  limit?: string;
  /** The user interrupted the model in a live session. */
  interrupted?: true;
};

/** How the application wants a question to look. */
export type AdkCard = {
  title?: string;
  icon?: string;
  colour?: string;
  severity?: string;
  fields?: { label?: string; value?: unknown; format?: string }[];
  link?: string;
};

/** One decision of a chain. `approvers`: user ids, and groups as `group:name`. `at`: ISO 8601. */
export type AdkChainLink = {
  approvers: string[];
  status: "waiting" | "pending" | "approved" | "denied" | "expired";
  by?: string;
  at?: string;
  reason?: string;
};

/** The `data` of parts `data-adk-*`, by the rest of their names. */
export type AdkDataParts = {
  /** What a person reads about an approval. The part has the approval's id. `deadline`: ISO 8601. */
  "adk-approval": {
    hint?: string;
    payload?: unknown;
    deadline?: string;
    card?: AdkCard;
    /** The JSON Schema of what an approver may change. */
    edits?: Record<string, unknown>;
    /** Where others decide, there may be no request for an approval that names the call. */
    toolCallId?: string;
    status?: "pending" | "approved" | "denied" | "expired" | "withdrawn" | "unknown";
    /** Whoever decided, where nobody was asked. */
    by?: "policy";
    chain?: AdkChainLink[];
  };
  /** A tool needs the user's consent. `authUri` is missing if it is no address for a browser, `toolCallId` if a whole
   * toolset needs it. */
  "adk-auth-request": { authUri?: string; credentialKey?: string; toolCallId?: string };
  /** An artifact was saved. A part `file` follows, if it can be downloaded. */
  "adk-artifact": { filename: string; version: number };
  /** Another agent goes on. */
  "adk-agent": { agent: string };
  /** Structured output of an agent. */
  "adk-output": unknown;
  /** Google's search suggestions. Show them as they are, in a sandboxed `iframe`. */
  "adk-search-suggestions": { html: string };
  /** A widget to render. */
  "adk-widget": { id: string; provider: string; payload: Record<string, unknown> };
  /** Changes of the session's state, for the keys that the application sends. */
  "adk-state": Record<string, unknown>;
  /** Output and route of a workflow's node, if the application sends them. */
  "adk-node": { path: string; output?: unknown; route?: unknown };
};

/** `part.providerMetadata.adk` of texts, and `callProviderMetadata.adk` of calls. */
export type AdkProviderMetadata = {
  /** The agent, unless it is the root agent. */
  author?: string;
  /** The call of the agent that runs as a tool. */
  toolCallId?: string;
  /** The text is what was spoken. */
  transcript?: true;
  /** Another text has replaced this one: hide it. */
  replaced?: true;
  /** This text replaces the one before. */
  replaces?: true;
  /** Which passage rests on which source. From `ai` 7 on, the part has them itself. */
  citations?: { source: Record<string, unknown>; startIndex?: number; endIndex?: number; citedText?: string }[];
};

/** Tools of ADK that a page answers with `addToolOutput`. */
export type AdkTools = {
  /** A question for approval, in `ai` 5 and with `approvalStyle: "confirmation-tool"`. */
  adk_request_confirmation: {
    input: {
      originalFunctionCall: { id: string; name: string; args: Record<string, unknown> };
      toolConfirmation: { hint?: string; payload?: unknown };
    };
    output: { confirmed: boolean; payload?: unknown; reason?: string };
  };
  /** A workflow asks for input. */
  adk_request_input: {
    input: { message?: string; payload?: unknown; response_schema?: unknown };
    output: unknown;
  };
};
