/** One chat: plain `useChat`, and what a page has to do around it. */
import { useChat } from "@ai-sdk/react";
import { bindChat } from "adk-stream-client";
import { type FileUIPart, isToolUIPart, type UIMessage } from "ai";
import { useCallback, useEffect, useRef, useState } from "react";
import type { ConversationProps } from "../conversation/Conversation.tsx";
import type { Mode, WireLog } from "../wire/log.ts";
import { type ChatsApi, type History, isDisconnect, readableError, refusalOf } from "./api.ts";
import { runWaitingCalls } from "./browser-calls.ts";
import { becomesIdle, createChat, hasAnswersToSend, isBusy } from "./chat.ts";
import { hasMovedOn, lacksWords } from "./record.ts";
import { resumeAnswer } from "./transports.ts";
import { useRecord } from "./useRecord.ts";

/** Nobody reads faster, and a burst of chunks costs one rendering. */
const RENDER_MS = 40;

/** How long the server takes, at most, to end an answer that nobody wants to hear. */
const INTERRUPTION_MS = 1_000;

/** When to look for words that another page may have got: at once, and when they have been said. */
const MISSED_WORDS_MS = [100, 1_500, 5_000];

type Decision = Parameters<ConversationProps["onDecide"]>[0];
type Output = Parameters<ConversationProps["onToolOutput"]>[0];

export interface ConversationOptions {
  api: ChatsApi;
  log: WireLog;
  id: string;
  history: History;
  mode: Mode;
  /** A turn has begun, or has come to its end. */
  onTurn(): void;
}

export function useConversation({ api, log, id, history, mode, onTurn }: ConversationOptions) {
  const toldOfTurn = useRef(onTurn);
  toldOfTurn.current = onTurn;
  // A chat of its own, which always tells its present state; `useChat` tells that of the last rendering.
  const [{ chat, transport }] = useState(() =>
    createChat({ api, log, id, messages: history.messages, mode, onTurnEnd: () => toldOfTurn.current() }),
  );
  const shown = useChat<UIMessage>({ chat, experimental_throttle: RENDER_MS });

  useEffect(
    () => () => {
      // In this order: a live session is left, not stopped.
      transport.leave(id);
      void chat.stop();
    },
    [chat, transport, id],
  );

  const [connection, setConnection] = useState(0);
  const reconnect = useCallback(() => setConnection((count) => count + 1), []);
  useEffect(() => {
    if (mode === "chat") return;
    const unbind = bindChat(chat, transport.live);
    return () => {
      unbind();
      transport.live.close();
    };
  }, [mode, chat, transport, connection]);

  useEffect(() => {
    if (shown.status === "streaming") toldOfTurn.current();
  }, [shown.status]);

  const { running } = history;
  const [isResumed, setResumed] = useState(running === undefined);
  const lookAtRecord = useRecord({ api, chat, isWatching: mode === "chat" && isResumed });
  useEffect(() => {
    if (running === undefined) return;
    void resumeAnswer(chat, running).then(async () => {
      // What can be read no more has ended: the record has it now.
      if (!chat.messages.some((message) => message.id === running)) await lookAtRecord();
      setResumed(true);
    });
  }, [running, chat, lookAtRecord]);
  useEffect(() => {
    if (isResumed && shown.status === "ready") runWaitingCalls(chat);
  }, [isResumed, shown.status, chat]);

  // Where two pages answer at the same moment, the words may go to the other one.
  useEffect(() => {
    if (!isResumed || shown.status !== "ready") return;
    const timers = MISSED_WORDS_MS.map((ms) =>
      setTimeout(() => {
        if (!isBusy(chat) && lacksWords(chat.messages)) void lookAtRecord();
      }, ms),
    );
    return () => timers.forEach(clearTimeout);
  }, [isResumed, shown.status, chat, lookAtRecord]);

  const hasLateAnswer = useRef(false);
  const sendLateAnswer = useCallback(() => {
    if (isBusy(chat) || !hasLateAnswer.current) return;
    hasLateAnswer.current = false;
    void chat.sendMessage();
  }, [chat]);
  useEffect(sendLateAnswer, [shown.status, sendLateAnswer]);

  const decide = useCallback(
    async ({ approvalId, toolCallId, approved, reason, payload }: Decision) => {
      if (payload !== undefined) chat.messages = withPayload(chat.messages, toolCallId, payload);
      await chat.addToolApprovalResponse({ id: approvalId, approved, reason });
      // The stock helpers look at the last message; an answer to an older one is sent by itself.
      hasLateAnswer.current ||= messageOf(chat.messages, toolCallId) !== chat.lastMessage;
      sendLateAnswer();
    },
    [chat, sendLateAnswer],
  );

  const giveOutput = useCallback(
    async ({ toolName, toolCallId, output }: Output) => {
      await chat.addToolOutput({ tool: toolName, toolCallId, output } as never);
      const message = messageOf(chat.messages, toolCallId);
      if (message === undefined || message === chat.lastMessage) return;
      // The AI SDK goes on with an older message for approvals only: the record tells what became of it.
      const { messages } = chat;
      const asked = { chatId: id, messageId: message.id, messages, abortSignal: undefined };
      for await (const _ of await transport.sendMessages({ trigger: "submit-message", ...asked }));
      await lookAtRecord();
    },
    [chat, transport, id, lookAtRecord],
  );

  /** What the server refuses to take back is shown again. */
  const again = useCallback(
    async (act: () => Promise<void>) => {
      const before = chat.messages;
      await act();
      if (chat.error !== undefined && refusalOf(chat.error) !== undefined) chat.messages = before;
    },
    [chat],
  );

  const regenerate = useCallback(
    (messageId: string) => void again(() => chat.regenerate({ messageId })),
    [again, chat],
  );

  const edit = useCallback(
    (messageId: string, text: string) => {
      const parts = chat.messages.find((message) => message.id === messageId)?.parts ?? [];
      const files = parts.filter((part): part is FileUIPart => part.type === "file");
      void again(() => chat.sendMessage({ text, files, messageId }));
    },
    [again, chat],
  );

  const retry = useCallback(async () => {
    const { error } = chat;
    chat.clearError();
    if (error !== undefined && isDisconnect(error)) {
      // It may be running, or be done.
      await chat.resumeStream();
      if (chat.error !== undefined) return;
      const record = await api.history(id).then(
        ({ messages }) => messages,
        (): UIMessage[] => [],
      );
      const asked = chat.messages.findLast(({ role }) => role === "user")?.id;
      if (record.at(-1)?.role === "assistant" && record.some((message) => message.id === asked)) {
        if (hasMovedOn(chat.messages, record)) chat.messages = record;
        return;
      }
    }
    await (hasAnswersToSend(chat) ? chat.sendMessage() : chat.regenerate());
  }, [api, chat, id]);

  const stop = useCallback(async () => {
    const isLive = transport.mode === "live";
    if (isLive) {
      // Enough while the model speaks, and the session goes on. A tool at work is only ended with it.
      transport.live.interrupt();
      if (await becomesIdle(chat, INTERRUPTION_MS)) return;
    }
    try {
      await api.stop(id);
    } catch {
      // Then at least nothing more of it is shown.
    }
    await chat.stop();
    if (!isLive) await lookAtRecord();
  }, [api, chat, id, transport, lookAtRecord]);

  const error = shown.error === undefined ? undefined : readableError(shown.error);
  const actions = { decide, giveOutput, regenerate, edit, retry, stop, reconnect };
  return { chat: shown, error, isBusy: isBusy(shown), transport, ...actions };
}

function messageOf(messages: UIMessage[], toolCallId: string): UIMessage | undefined {
  return messages.find(({ parts }) => parts.some((part) => isToolUIPart(part) && part.toolCallId === toolCallId));
}

/** The AI SDK has no place for it in an answer, but sends along what is in the part. */
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
