/** What a page reads of messages, typed: compiled with the types of each AI SDK, and never run. */
import { Chat } from "@ai-sdk/react";
import {
  type AdkDataParts,
  type AdkMetadata,
  type AdkProviderMetadata,
  type AdkTools,
  type AdkUIMessage,
  LiveChatTransport,
} from "adk-stream-client";
import type { UIMessage } from "ai";

type Place = { latitude: number; longitude: number };
type OwnTools = { get_location: { input: { precise: boolean }; output: Place } };
type OwnMessage = AdkUIMessage<OwnTools & AdkTools>;

export const chat = new Chat<OwnMessage>({ transport: new LiveChatTransport<OwnMessage>({ url: "/api/chat/live" }) });
export const stock: UIMessage[] = chat.messages;

export async function answer(toolCallId: string) {
  await chat.addToolOutput({ tool: "get_location", toolCallId, output: { latitude: 35.7, longitude: 139.7 } });
  await chat.addToolOutput({ tool: "adk_request_confirmation", toolCallId, output: { confirmed: true } });
  await chat.addToolOutput({ tool: "adk_request_input", toolCallId, output: { result: 3 } });
  // @ts-expect-error: a place has two numbers
  await chat.addToolOutput({ tool: "get_location", toolCallId, output: { latitude: 35.7 } });
  // @ts-expect-error: no such tool
  await chat.addToolOutput({ tool: "get_weather", toolCallId, output: {} });
}

export function read(message: AdkUIMessage): string[] {
  const metadata: AdkMetadata | undefined = message.metadata;
  const said: string[] = [`${metadata?.usage?.totalTokens} ${metadata?.modelVersion} ${metadata?.limit}`];
  for (const part of message.parts) {
    if (part.type === "data-adk-approval") said.push(part.data.hint ?? "", part.data.deadline ?? "");
    if (part.type === "data-adk-auth-request") said.push(part.data.authUri ?? "", part.data.toolCallId ?? "");
    if (part.type === "data-adk-artifact") said.push(part.data.filename, part.data.version.toFixed());
    if (part.type === "data-adk-agent") said.push(part.data.agent);
    if (part.type === "data-adk-search-suggestions") said.push(part.data.html);
    if (part.type === "data-adk-widget") said.push(part.data.id, part.data.provider);
    if (part.type === "data-adk-state") said.push(...Object.keys(part.data));
    if (part.type === "data-adk-node") said.push(part.data.path);
    if (part.type === "text") {
      const about = part.providerMetadata?.adk as AdkProviderMetadata | undefined;
      if (about?.replaced !== true) said.push(about?.author ?? "", part.text);
    }
    // @ts-expect-error: an agent is named by a string
    if (part.type === "data-adk-agent") said.push(part.data.agent.name);
  }
  return said;
}

export const output: AdkDataParts["adk-output"] = { anything: "that the agent's schema says" };
