/** One browser tab: a real `Chat` with a real `DefaultChatTransport`, watched from outside. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { UIMessage } from "ai";
import { Recorder } from "./recording.ts";
import type { Chat, ChatInit, Release } from "./releases.ts";
import { errorText } from "./wire.ts";

export type Resend = "tool-calls" | "approvals" | "both";

export interface SessionOptions {
  api: string;
  chatId?: string;
  headers?: Record<string, string>;
  body?: Record<string, unknown>;
  /** Which stock helpers serve as `sendAutomaticallyWhen`. */
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
  resendLoop = false;

  readonly #deadline: AbortSignal;
  readonly #actions = new Set<Promise<unknown>>();
  #actionError: unknown = undefined;
  #requestsBeforeAction = 0;
  #changes = 0;
  #nextChange = Promise.withResolvers<void>();

  constructor(release: Release, options: SessionOptions, deadline: AbortSignal) {
    this.release = release;
    this.api = options.api;
    const changed = () => this.#changed();
    this.recorder = new Recorder(release, deadline, changed);
    this.#deadline = deadline;
    this.chat = new release.Chat(this.#chatInit(options));
    this.chat["~registerMessagesCallback"](changed);
    this.chat["~registerStatusCallback"](changed);
    deadline.addEventListener("abort", changed);
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

  /** Until the person can see what is named; at once an error when the chat comes to rest without it. */
  async untilShown(isShown: () => boolean): Promise<void> {
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
      transport: new this.release.sdk.DefaultChatTransport({
        api: options.api,
        headers: options.headers,
        body: options.body,
        fetch: this.recorder.fetch,
        prepareSendMessagesRequest: options.onlyLast
          ? ({ id, messages, trigger, messageId, body }) => ({
              body: { ...body, id, trigger, messageId, message: messages.find((m) => m.id === messageId) ?? messages.at(-1) },
            })
          : undefined,
      }),
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

  #sendAutomaticallyWhen(resend: Resend | null): ChatInit["sendAutomaticallyWhen"] {
    if (resend === null) return undefined;
    const wanted = stockHelpers(this.release, resend);
    // Not async: the first releases take a promise for a yes.
    return ({ messages }) => {
      if (!wanted.some((isComplete) => isComplete({ messages }))) return false;
      const requests = this.recorder.requests.length - this.#requestsBeforeAction;
      this.resendLoop ||= requests >= MAX_REQUESTS_PER_ACTION;
      return !this.resendLoop;
    };
  }
}

type StockHelper = Release["sdk"]["lastAssistantMessageIsCompleteWithToolCalls"];

function stockHelpers({ name, sdk }: Release, resend: Resend): StockHelper[] {
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
