/** What a person answers to calls: approvals, and the forms of the agent's questions. */
import type { Chat } from "@ai-sdk/react";
import { type ChatStatus, isToolUIPart, type UIMessage } from "ai";
import { useCallback, useEffect, useRef } from "react";
import type { Decision, ToolOutput } from "../conversation/actions.ts";
import { codeOf, DOES_NOT_FIT } from "./api.ts";
import { isBusy } from "./chat.ts";
import type { SwitchingTransport } from "./transports.ts";

interface AnswersOptions {
  chat: Chat<UIMessage>;
  transport: SwitchingTransport;
  status: ChatStatus;
  lookAtRecord(): Promise<void>;
}

export function useAnswers({ chat, transport, status, lookAtRecord }: AnswersOptions) {
  // The AI SDK sends the answers to the last message by itself, but not those to an older one.
  const hasUnsentAnswer = useRef(false);
  const sendOlderAnswer = useCallback(() => {
    if (isBusy(chat) || !hasUnsentAnswer.current) return;
    hasUnsentAnswer.current = false;
    void chat.sendMessage();
  }, [chat]);
  useEffect(sendOlderAnswer, [status, sendOlderAnswer]);

  // An output that the server does not take can be given again.
  const given = useRef<string>(undefined);
  useEffect(() => {
    if (given.current === undefined || (status !== "error" && status !== "streaming")) return;
    if (codeOf(chat.error) === DOES_NOT_FIT) chat.messages = withOpenCall(chat.messages, given.current);
    given.current = undefined;
  }, [status, chat]);

  const decide = useCallback(
    async ({ approvalId, toolCallId, approved, reason, payload }: Decision) => {
      if (payload !== undefined) chat.messages = withPayload(chat.messages, toolCallId, payload);
      await chat.addToolApprovalResponse({ id: approvalId, approved, reason });
      hasUnsentAnswer.current ||= messageOf(chat.messages, toolCallId) !== chat.lastMessage;
      sendOlderAnswer();
    },
    [chat, sendOlderAnswer],
  );

  const giveOutput = useCallback(
    async ({ toolName, toolCallId, ...result }: ToolOutput) => {
      given.current = toolCallId;
      const answer = "errorText" in result ? { state: "output-error", ...result } : result;
      await chat.addToolOutput({ tool: toolName, toolCallId, ...answer } as never);
      const message = messageOf(chat.messages, toolCallId);
      if (message === undefined || message === chat.lastMessage) return;
      // The AI SDK continues an older message for approvals only. So the output goes past it, and the page takes what
      // came of it from the record.
      const { id: chatId, messages } = chat;
      const request = { chatId, messageId: message.id, messages, abortSignal: undefined };
      try {
        for await (const _ of await transport.sendMessages({ trigger: "submit-message", ...request }));
        await lookAtRecord();
      } catch {
        chat.messages = withOpenCall(chat.messages, toolCallId);
      }
    },
    [chat, transport, lookAtRecord],
  );

  return { decide, giveOutput };
}

function messageOf(messages: UIMessage[], toolCallId: string): UIMessage | undefined {
  return messages.find(({ parts }) => parts.some((part) => isToolUIPart(part) && part.toolCallId === toolCallId));
}

function withOpenCall(messages: UIMessage[], toolCallId: string): UIMessage[] {
  return messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) => {
      if (!isToolUIPart(part) || part.toolCallId !== toolCallId) return part;
      return { ...part, state: "input-available", output: undefined, errorText: undefined } as typeof part;
    }),
  }));
}

/** The AI SDK's answer has no field for a payload, but the SDK sends whatever is in the part. */
function withPayload(messages: UIMessage[], toolCallId: string, payload: unknown): UIMessage[] {
  return messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) => {
      if (!isToolUIPart(part) || part.toolCallId !== toolCallId) return part;
      const approval: object = { ...part.approval, payload };
      return { ...part, approval } as typeof part;
    }),
  }));
}
