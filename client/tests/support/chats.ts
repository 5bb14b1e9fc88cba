/** The chats that people have: `Chat` and `useChat` of three AI SDKs in React, and of the newest one in Vue. */
import type { TestContext } from "node:test";
import type { ChatInit, UIMessage } from "ai";
import { createElement, StrictMode, useEffect } from "react";
import { create } from "react-test-renderer";
import { effectScope } from "vue";
import * as vue from "@ai-sdk/vue";
import * as react5 from "client-5";
import * as react6 from "client-6";
import * as react7 from "client-7";
import type { BindableChat } from "../../src/bind-chat.ts";
import { read } from "../../src/chat-like.ts";
import type { AnswerableChat } from "../../src/pending-calls.ts";
import { until } from "./until.ts";

// It renders without a document, which is all that is wanted of it here.
const { error } = console;
console.error = (...texts) =>
  void (String(texts[0]).startsWith("react-test-renderer is deprecated") || error(...texts));

/** What every one of them can do; the types are those of no release in particular. */
export interface AnyChat extends Omit<BindableChat, "messages">, AnswerableChat {
  messages: BindableChat["messages"];
  error: unknown;
  sendMessage: (message: { text: string }) => Promise<void>;
  stop: () => Promise<void>;
}

export interface OpenChat {
  /** The value that the page has at present. */
  readonly value: AnyChat;
  readonly messages: UIMessage[];
  readonly status: string;
  readonly errors: Error[];
}

export interface PageOptions {
  id?: string;
  transport: unknown;
  messages?: UIMessage[];
  onToolCall?: (options: { toolCall: { toolName: string; toolCallId: string } }) => void;
  sendAutomaticallyWhen?: (options: { messages: UIMessage[] }) => boolean;
  /** What the page does in an effect, once it is mounted; what it returns is called at the end. */
  effect?: (chat: AnyChat) => (() => void) | undefined;
}

type ChatClass = new (init: ChatInit<UIMessage>) => AnyChat;
type Hook = (init: ChatInit<UIMessage>) => AnyChat;

export interface ChatKind {
  name: string;
  sdkVersion: 5 | 6 | 7;
  open(t: TestContext, options: PageOptions): OpenChat;
}

export const CHATS: ChatKind[] = [
  classKind("Chat of ai@5", 5, react5.Chat),
  classKind("Chat of ai@6", 6, react6.Chat),
  classKind("Chat of ai@7", 7, react7.Chat),
  hookKind("useChat of ai@5", 5, react5.useChat),
  hookKind("useChat of ai@6", 6, react6.useChat),
  hookKind("useChat of ai@7", 7, react7.useChat),
  classKind("Chat in Vue", 7, vue.Chat),
  { name: "useChat in Vue", sdkVersion: 7, open: openComposable },
];

export function lastText(chat: OpenChat): string {
  const parts = (chat.messages.at(-1)?.parts ?? []) as { text?: string }[];
  return parts.map(({ text }) => text ?? "").join("");
}

/** Who said what, one line for each message. */
export function story(chat: OpenChat): string[] {
  return chat.messages.map(({ id, role, parts }) => {
    const texts = (parts as { text?: string }[]).flatMap(({ text }) => text ?? []);
    return `${id} ${role}: ${texts.join(" | ")}`;
  });
}

export function untilReady(chat: OpenChat): Promise<void> {
  return until(() => chat.status === "ready", `the chat is ready; it is ${chat.status}`);
}

function initOf(options: PageOptions, errors: Error[]): ChatInit<UIMessage> {
  const { effect: _, id = "c1", ...init } = options;
  return { ...init, id, onError: (error: Error) => void errors.push(error) } as unknown as ChatInit<UIMessage>;
}

function classKind(name: string, sdkVersion: 5 | 6 | 7, anyClass: unknown): ChatKind {
  const Chat = anyClass as ChatClass;
  return {
    name,
    sdkVersion,
    open(t, options) {
      const errors: Error[] = [];
      const chat = new Chat(initOf(options, errors));
      const end = options.effect?.(chat);
      t.after(() => end?.());
      return opened(() => chat, errors);
    },
  };
}

/** Rendered as in development: React's strict mode runs each effect twice. */
function hookKind(name: string, sdkVersion: 5 | 6 | 7, hook: unknown): ChatKind {
  const useChat = hook as Hook;
  return {
    name,
    sdkVersion,
    open(t, options) {
      const errors: Error[] = [];
      let value: AnyChat | undefined;
      const init = initOf(options, errors);
      function Page() {
        const chat = useChat(init);
        useEffect(() => {
          value = chat;
        });
        useEffect(() => options.effect?.(chat), [chat.id]);
        return null;
      }
      const page = create(createElement(StrictMode, null, createElement(Page)));
      t.after(() => page.unmount());
      return opened(() => value, errors);
    },
  };
}

function openComposable(t: TestContext, options: PageOptions): OpenChat {
  const errors: Error[] = [];
  const scope = effectScope();
  const chat = scope.run(() => vue.useChat(initOf(options, errors) as never)) as unknown as AnyChat;
  const end = options.effect?.(chat);
  t.after(() => {
    end?.();
    scope.stop();
  });
  return opened(() => chat, errors);
}

function opened(current: () => AnyChat | undefined, errors: Error[]): OpenChat {
  const value = () => {
    const chat = current();
    if (chat === undefined) throw new Error("the page is not rendered yet");
    return chat;
  };
  return {
    errors,
    get value() {
      return value();
    },
    get messages() {
      return current() === undefined ? [] : read(value().messages);
    },
    get status() {
      return current() === undefined ? "not rendered" : read(value().status);
    },
  };
}
