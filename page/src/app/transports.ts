/** One transport for `useChat`, whichever way the conversation goes at present. */
import { LiveChatTransport, type LiveChatTransportOptions, type LiveListener } from "adk-stream-client";
import { type AbstractChat, type ChatTransport, DefaultChatTransport, type UIMessage } from "ai";
import { tappedFetch, tappedWebSocket } from "../wire/taps.ts";
import type { Mode, WireLog } from "../wire/log.ts";
import { type ChatsApi, SDK_VERSION, VERSION_HEADER } from "./api.ts";

type SendOptions = Parameters<ChatTransport<UIMessage>["sendMessages"]>[0];
type ReconnectOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];
type Live = ChatTransport<UIMessage> & Pick<LiveChatTransport, "close">;

/** A model is done with its answer long before all of it is heard: an interruption silences the page by itself, too. */
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
   * To be called between turns. A live session that is left would refuse turns over HTTP; it is ended, but not while
   * something waits for an answer: ending it would refuse that.
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
    const counting = messageThatCounts(options.messages, options.messageId);
    const isAnswer = options.trigger === "submit-message" && counting?.role === "assistant";
    // An answer is taken up by a live session that is still there; a turn is not.
    if (!isAnswer) await this.#endLeftLive(options.chatId);
    return this.#chat.sendMessages(options);
  }

  async reconnectToStream(options: ReconnectOptions) {
    return (this.#mode === "live" ? this.live : this.#chat).reconnectToStream(options);
  }

  /** Also waits for an end that was asked for before. */
  #endLeftLive(chatId: string): Promise<void> {
    // What is wrong with the server, the turn will tell.
    if (leftLive.delete(chatId)) this.#ending = this.#endLive(chatId).catch(() => {});
    return this.#ending;
  }
}

/** The server keeps the history: only the message is sent that says something new. */
export function messageThatCounts(messages: UIMessage[], messageId: string | undefined): UIMessage | undefined {
  return messages.find(({ id, role }) => id === messageId && role === "assistant") ?? messages.at(-1);
}

function onlyWhatCounts(messages: UIMessage[], messageId: string | undefined): UIMessage[] {
  const message = messageThatCounts(messages, messageId);
  return message === undefined ? [] : [message];
}

/** By its name an answer can be read also when it has just ended. A socket knows no names: there it must be running. */
export function resumeAnswer(chat: Pick<AbstractChat<UIMessage>, "resumeStream">, messageId: string): Promise<void> {
  return chat.resumeStream({ metadata: { message: messageId } satisfies NamedAnswer });
}

type NamedAnswer = { message: string };

export function createTransport(api: ChatsApi, log: WireLog, mode: Mode): SwitchingTransport {
  const chat = new DefaultChatTransport<UIMessage>({
    api: api.url,
    headers: VERSION_HEADER,
    fetch: tappedFetch(log),
    prepareSendMessagesRequest: ({ id, messages, messageId, trigger, body }) => ({
      body: { ...body, id, trigger, messageId, messages: onlyWhatCounts(messages, messageId) },
    }),
    prepareReconnectToStreamRequest: ({ api: url, id, requestMetadata: named }) => {
      if (named === undefined) return {}; // whatever is running
      return { api: `${url}/${encodeURIComponent(id)}/stream?${new URLSearchParams(named as NamedAnswer)}` };
    },
  });
  const options: LiveChatTransportOptions = {
    url: `${api.url}/live`,
    sdkVersion: SDK_VERSION,
    webSocket: tappedWebSocket(log),
    prepareSendMessagesRequest: ({ messages, messageId }) => ({ messages: onlyWhatCounts(messages, messageId) }),
  };
  return new SwitchingTransport(mode, chat, new InterruptibleTransport(options), (chatId) => api.stop(chatId));
}
