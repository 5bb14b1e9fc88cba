/** One browser tab: a real `Chat` with a real transport, watched from outside. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ChatTransport, UIMessage } from "ai";
// Its source: what is built of it is not there in a fresh clone.
import { answersAreComplete, bindChat, LiveChatTransport } from "../../client/src/index.ts";
import { Recorder } from "./recording.ts";
import type { Chat, ChatInit, Release } from "./releases.ts";
import { errorText } from "./wire.ts";

export type Resend = "tool-calls" | "approvals" | "both" | "template" | "ours";

/** Requests over HTTP, or a live session: over the AI SDK's own WebSocket transport, or over that of `client/`. */
export type TransportName = "http" | "official" | "ours";

export interface SessionOptions {
  api: string;
  transport?: TransportName;
  chatId?: string;
  headers?: Record<string, string>;
  body?: Record<string, unknown>;
  /** What serves as `sendAutomaticallyWhen`: stock helpers, what public templates have instead, or that of `client/`. */
  resend?: Resend | null;
  initialMessages?: UIMessage[];
  /** Post only the message that matters, as applications do that keep the history on the server. */
  onlyLast?: boolean;
  /** What the page does in `onToolCall`, by the tool's name; calls of other tools are left alone. */
  browserTools?: Record<string, ToolResult>;
}

export type ToolResult = { output: unknown } | { errorText: string };

export interface Callbacks {
  onFinish: unknown[];
  onData: unknown[];
  onToolCall: unknown[];
  onError: string[];
}

/** More requests than this after one action of the person are a loop, not a conversation. */
const MAX_REQUESTS_PER_ACTION = 8;

export class Session {
  readonly release: Release;
  readonly chat: Chat;
  readonly api: string;
  readonly recorder: Recorder;
  readonly callbacks: Callbacks = { onFinish: [], onData: [], onToolCall: [], onError: [] };
  readonly otherTabs: Session[] = [];
  resendLoop = false;

  readonly #options: SessionOptions;
  readonly #deadline: AbortSignal;
  readonly #actions = new Set<Promise<unknown>>();
  #actionError: unknown = undefined;
  #requestsBeforeAction = 0;
  #changes = 0;
  #nextChange = Promise.withResolvers<void>();
  #bind = () => {};
  #hangUp = () => {};

  constructor(release: Release, options: SessionOptions, deadline: AbortSignal) {
    this.release = release;
    this.api = options.api;
    this.#options = options;
    const changed = () => this.#changed();
    this.recorder = new Recorder(release, deadline, changed);
    this.#deadline = deadline;
    this.chat = new release.Chat(this.#chatInit(options));
    this.chat["~registerMessagesCallback"](changed);
    this.chat["~registerStatusCallback"](changed);
    deadline.addEventListener("abort", changed);
    this.#bind();
  }

  /** The same chat in another tab. */
  openTab(transport: TransportName, initialMessages: UIMessage[]): Session {
    const options = { ...this.#options, chatId: this.chat.id, transport, initialMessages };
    const tab = new Session(this.release, options, this.#deadline);
    this.otherTabs.push(tab);
    return tab;
  }

  /** The tab is closed, and whatever was opened from it. */
  close(): void {
    for (const tab of this.otherTabs) tab.close();
    this.#hangUp();
  }

  get lastMessage(): UIMessage | undefined {
    return this.chat.messages.at(-1);
  }

  /** Start something the person does. The promise may last as long as the response: `untilIdle` waits for it. */
  act(start: (chat: Chat) => Promise<unknown>): Promise<unknown> {
    this.#requestsBeforeAction = this.recorder.requests.length;
    return this.#follow(start(this.chat));
  }

  answerCall(tool: string, toolCallId: string, result: ToolResult): Promise<void> {
    const outcome = "errorText" in result ? { state: "output-error" as const, ...result } : result;
    return Promise.resolve(this.chat.addToolOutput({ tool, toolCallId, ...outcome }));
  }

  #follow(work: Promise<unknown>): Promise<unknown> {
    const action = work
      .catch((error: unknown) => {
        this.#actionError ??= error;
      })
      .finally(() => {
        this.#actions.delete(action);
        this.#changed();
      });
    this.#actions.add(action);
    return action;
  }

  /** Until no request runs and none is about to be sent by itself. */
  async untilIdle(): Promise<void> {
    for (;;) {
      await this.#until(() => this.#isIdle);
      const changes = this.#changes;
      // The clients decide about an automatic request in microtasks after the status became ready.
      await nextTurn();
      if (changes === this.#changes && this.#isIdle) break;
    }
    if (this.#actionError !== undefined) throw this.#actionError;
  }

  /**
   * Until the person can see what is named; at once an error when the chat comes to rest without it. Unless it comes
   * `unasked`, whenever the server begins to tell it.
   */
  async untilShown(isShown: () => boolean, { unasked = false } = {}): Promise<void> {
    if (unasked) return this.#until(isShown);
    await Promise.race([this.untilIdle(), this.#until(isShown)]);
    if (!isShown()) throw new Error(`the chat came to rest without it, ${this.chat.status}`);
  }

  get #isIdle(): boolean {
    return this.#actions.size === 0 && (this.chat.status === "ready" || this.chat.status === "error");
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#deadline.aborted) throw new Error(`out of time while the chat was ${this.chat.status}`);
      await this.#nextChange.promise;
    }
  }

  #changed(): void {
    this.#changes += 1;
    this.#nextChange.resolve();
    this.#nextChange = Promise.withResolvers<void>();
  }

  #chatInit(options: SessionOptions): ChatInit {
    const { callbacks } = this;
    return {
      id: options.chatId,
      messages: options.initialMessages,
      transport: this.#transport(options),
      sendAutomaticallyWhen: this.#sendAutomaticallyWhen(options.resend ?? null),
      onFinish: ({ message, messages: _, ...outcome }) => {
        callbacks.onFinish.push({ messageId: message.id, ...outcome });
      },
      onData: (part) => void callbacks.onData.push(part),
      onToolCall: ({ toolCall }) => {
        callbacks.onToolCall.push(toolCall);
        const result = options.browserTools?.[toolCall.toolName];
        // Not awaited: the stream would wait for the answer, and the answer for the stream.
        if (result !== undefined) void this.#follow(this.answerCall(toolCall.toolName, toolCall.toolCallId, result));
      },
      onError: (error) => void callbacks.onError.push(errorText(error)),
    };
  }

  #transport({ api, headers, body, onlyLast, transport = "http" }: SessionOptions): ChatTransport<UIMessage> {
    const { name, sdk } = this.release;
    if (transport === "http") {
      return new sdk.DefaultChatTransport({
        api,
        headers,
        body,
        fetch: this.recorder.fetch,
        prepareSendMessagesRequest: onlyLast
          ? ({ id, messages, trigger, messageId, body }) => ({
              body: { ...body, id, trigger, messageId, message: theOneThatCounts(messages, messageId) },
            })
          : undefined,
      });
    }
    const options = {
      url: `${api}/live`,
      headers,
      body,
      webSocket: this.recorder.WebSocket,
      prepareSendMessagesRequest: onlyLast
        ? ({ messages, messageId }: { messages: UIMessage[]; messageId: string | undefined }) => ({
            messages: [theOneThatCounts(messages, messageId)],
          })
        : undefined,
    };
    if (transport === "ours") {
      const live = new LiveChatTransport({ ...options, sdkVersion: name === "5" ? 5 : undefined });
      this.#bind = () => {
        const unbind = bindChat(this.chat, live);
        this.#hangUp = () => {
          unbind();
          live.close();
        };
      };
      return live;
    }
    if (sdk.WebSocketChatTransport === undefined) throw new Error(`AI SDK ${name} has no transport over WebSockets`);
    // Its type of a socket is one that node's own does not quite have.
    const official = new sdk.WebSocketChatTransport(options as OfficialOptions);
    this.#hangUp = () => official.close();
    return official;
  }

  #sendAutomaticallyWhen(resend: Resend | null): ChatInit["sendAutomaticallyWhen"] {
    if (resend === null) return undefined;
    const wanted = helpers(this.release, resend);
    // Not async: the first releases take a promise for a yes.
    return ({ messages }) => {
      if (!wanted.some((isComplete) => isComplete({ messages }))) return false;
      const requests = this.recorder.requests.length - this.#requestsBeforeAction;
      this.resendLoop ||= requests >= MAX_REQUESTS_PER_ACTION;
      return !this.resendLoop;
    };
  }
}

function theOneThatCounts(messages: UIMessage[], messageId: string | undefined): UIMessage {
  return messages.find(({ id }) => id === messageId) ?? messages.at(-1)!;
}

type OfficialOptions = ConstructorParameters<NonNullable<Release["sdk"]["WebSocketChatTransport"]>>[0];
type StockHelper = Release["sdk"]["lastAssistantMessageIsCompleteWithToolCalls"];

/** Templates post approvals. A denial stays in its message, behind which the user may write. */
function hasApproval({ messages }: { messages: UIMessage[] }): boolean {
  const parts: { type: string; state?: string; approval?: { approved?: boolean } }[] = messages.at(-1)?.parts ?? [];
  return parts.some(({ state, approval }) => state === "approval-responded" && approval?.approved === true);
}

function helpers({ name, sdk }: Release, resend: Resend): StockHelper[] {
  if (resend === "ours") return [answersAreComplete];
  if (resend === "template") return [hasApproval];
  const helpers: StockHelper[] = [];
  if (resend !== "approvals") helpers.push(sdk.lastAssistantMessageIsCompleteWithToolCalls);
  if (resend !== "tool-calls") {
    if (sdk.lastAssistantMessageIsCompleteWithApprovalResponses === undefined) {
      throw new Error(`AI SDK ${name} has no approvals: resend must be "tool-calls"`);
    }
    helpers.push(sdk.lastAssistantMessageIsCompleteWithApprovalResponses);
  }
  return helpers;
}
