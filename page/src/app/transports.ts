/** One transport for `useChat`, over HTTP or over the live socket, whichever mode the chat is in. */
import { LiveChatTransport, type LiveChatTransportOptions, type LiveListener } from "adk-stream-client";
import { type AbstractChat, type ChatTransport, DefaultChatTransport, type UIMessage } from "ai";
import { tappedFetch, tappedWebSocket } from "../wire/taps.ts";
import type { Mode, WireLog } from "../wire/log.ts";
import { type ChatsApi, SDK_VERSION } from "./api.ts";

type SendOptions = Parameters<ChatTransport<UIMessage>["sendMessages"]>[0];
type ReconnectOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];
type Live = ChatTransport<UIMessage> & Pick<LiveChatTransport, "close">;

/**
 * A model ends its answer long before the page has played it. The server has nothing to interrupt then, so an
 * interruption also silences the page itself.
 */
export class InterruptibleTransport extends LiveChatTransport {
  readonly #listeners = new Set<LiveListener>();

  override listen(listener: LiveListener): () => void {
    this.#listeners.add(listener);
    const endListening = super.listen(listener);
    return () => {
      this.#listeners.delete(listener);
      endListening();
    };
  }

  override interrupt(): void {
    super.interrupt();
    for (const listener of [...this.#listeners]) listener({ type: "audio-clear", id: undefined });
  }
}

/** Chats whose live session the server may still keep, since this page has left it without ending it. */
const leftLive = new Set<string>();

export class SwitchingTransport<L extends Live = LiveChatTransport> implements ChatTransport<UIMessage> {
  /** Both give the whole message again when they resume. */
  readonly resumeStreamIsReplay = true;
  readonly live: L;
  #mode: Mode;
  readonly #chat: ChatTransport<UIMessage>;
  readonly #endLive: (chatId: string) => Promise<void>;
  #ending: Promise<void> = Promise.resolve();

  constructor(mode: Mode, chat: ChatTransport<UIMessage>, live: L, endLive: (chatId: string) => Promise<void>) {
    this.#mode = mode;
    this.#chat = chat;
    this.live = live;
    this.#endLive = endLive;
  }

  get mode(): Mode {
    return this.#mode;
  }

  /**
   * Call this between turns. As long as the server keeps a live session, it refuses turns over HTTP. So the session
   * that is left is ended, but not while something waits for an answer: ending it would refuse that.
   */
  async switchTo(mode: Mode, chatId: string, hasWaiting: boolean): Promise<void> {
    if (mode === this.#mode) return;
    this.#mode = mode;
    if (mode === "live") return void leftLive.delete(chatId);
    this.live.close();
    leftLive.add(chatId);
    if (!hasWaiting) await this.#endLeftLive(chatId);
  }

  /** The page turns to another chat. */
  leave(chatId: string): void {
    if (this.#mode === "live") leftLive.add(chatId);
    this.live.close();
  }

  async sendMessages(options: SendOptions) {
    if (this.#mode === "live") return this.live.sendMessages(options);
    const message = messageToSend(options.messages, options.messageId);
    const isAnswer = options.trigger === "submit-message" && message?.role === "assistant";
    // A live session that the server still keeps takes answers over HTTP, but no turns.
    if (!isAnswer) await this.#endLeftLive(options.chatId);
    return this.#chat.sendMessages(options);
  }

  async reconnectToStream(options: ReconnectOptions) {
    return (this.#mode === "live" ? this.live : this.#chat).reconnectToStream(options);
  }

  /** Also waits for an end that was asked for before. */
  #endLeftLive(chatId: string): Promise<void> {
    // If the server has a problem, the turn will show it.
    if (leftLive.delete(chatId)) this.#ending = this.#endLive(chatId).catch(() => {});
    return this.#ending;
  }
}

/** The server keeps the history, so only the message that says something new is sent. */
export function messageToSend(messages: UIMessage[], messageId: string | undefined): UIMessage | undefined {
  return messages.find(({ id, role }) => id === messageId && role === "assistant") ?? messages.at(-1);
}

function messagesToSend(messages: UIMessage[], messageId: string | undefined): UIMessage[] {
  const message = messageToSend(messages, messageId);
  return message === undefined ? [] : [message];
}

/** Over HTTP the id brings the answer even if it has just ended. Over a socket the answer must still be running. */
export function resumeAnswer(chat: Pick<AbstractChat<UIMessage>, "resumeStream">, messageId: string): Promise<void> {
  return chat.resumeStream({ metadata: { message: messageId } satisfies NamedAnswer });
}

type NamedAnswer = { message: string };

export function createTransport(api: ChatsApi, log: WireLog, mode: Mode): SwitchingTransport {
  const chat = new DefaultChatTransport<UIMessage>({
    api: api.url,
    headers: api.headers,
    fetch: tappedFetch(log),
    prepareSendMessagesRequest: ({ id, messages, messageId, trigger, body }) => ({
      body: { ...body, id, trigger, messageId, messages: messagesToSend(messages, messageId) },
    }),
    prepareReconnectToStreamRequest: ({ api: url, id, requestMetadata: named }) => {
      if (named === undefined) return {}; // whatever is running
      return { api: `${url}/${encodeURIComponent(id)}/stream?${new URLSearchParams(named as NamedAnswer)}` };
    },
  });
  const options: LiveChatTransportOptions = {
    url: api.liveUrl,
    sdkVersion: SDK_VERSION,
    webSocket: tappedWebSocket(log),
    prepareSendMessagesRequest: ({ messages, messageId }) => ({ messages: messagesToSend(messages, messageId) }),
  };
  return new SwitchingTransport(mode, chat, new InterruptibleTransport(options), (chatId) => api.stop(chatId));
}
