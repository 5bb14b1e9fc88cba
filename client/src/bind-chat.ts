/** Binds a chat to its live session, for what no chunk can do: turns that the server begins, and spoken words. */
import type { UIMessage } from "ai";
import { type ChatLike, isBusy, isSnapshot, read, updateMessages } from "./chat-like.ts";
import type { LiveEvent } from "./frames.ts";

export interface BindableChat<M extends UIMessage = UIMessage> extends ChatLike<M> {
  resumeStream: () => Promise<void>;
}

/** The part of the transport that is used here. */
export interface BindableTransport {
  attach(chatId: string): () => void;
  isActive(chatId: string): boolean;
  listen(listener: (event: LiveEvent) => void): () => void;
}

/** Not every kind of chat has an event for becoming idle, so the chat is polled this often. */
const LOOK_MS = 20;

/**
 * Attaches the chat to the live session. A turn that the server begins is read as soon as the chat is idle; what the
 * user said becomes a message, before its answer. Returns how to end it.
 */
export function bindChat<M extends UIMessage>(chat: BindableChat<M>, transport: BindableTransport): () => void {
  const binding = new Binding(chat, transport);
  return () => binding.end();
}

type Transcript = Extract<LiveEvent, { type: "transcript" }>;
/** `messageId`: the message that the turn writes, where that is known. */
type Turn = { messageId?: string };

class Binding<M extends UIMessage> {
  readonly #chat: BindableChat<M>;
  readonly #transport: BindableTransport;
  readonly #id: string;
  readonly #detach: () => void;
  readonly #endListening: () => void;
  /** The id of the answer, by the id of the user's message. */
  readonly #answers = new Map<string, string>();
  /** Speech that could not be added to the messages yet, by the id of its message. */
  readonly #unplaced = new Map<string, Transcript>();
  /** By their messages. A resume reads what is running then, or else the newest that was not read. */
  readonly #waitingTurns = new Map<string | undefined, Turn>();
  #turnBeingRead: Turn | undefined;
  /** At the last look. */
  #wasIdle = false;
  #wasLost = false;
  #isEnded = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(chat: BindableChat<M>, transport: BindableTransport) {
    this.#chat = chat;
    this.#transport = transport;
    this.#id = read(chat.id);
    this.#endListening = transport.listen((event) => this.#hear(event));
    this.#detach = transport.attach(this.#id);
  }

  end(): void {
    this.#isEnded = true;
    this.#endListening();
    this.#detach();
    clearTimeout(this.#timer);
  }

  #hear(event: LiveEvent): void {
    if (event.type === "connection") this.#wasLost ||= event.state === "lost";
    else if (event.type === "error" || event.id !== this.#id) return;
    else if (event.type === "transcript" && event.role === "user") this.#place(event);
    else if (event.type === "turn") {
      if (event.userMessageId !== undefined) this.#answers.set(event.userMessageId, event.messageId);
      this.#expect(event);
    } else if (event.type === "attached" && this.#wasLost) {
      // A turn may have begun while there was no socket to announce it.
      this.#wasLost = false;
      this.#expect({});
    }
  }

  #expect(turn: Turn): void {
    this.#waitingTurns.delete(turn.messageId);
    this.#waitingTurns.set(turn.messageId, turn);
    this.#wasIdle = false;
    this.#look();
  }

  #look(): void {
    clearTimeout(this.#timer);
    if (this.#isEnded) return;
    const isIdle = !this.#isBusy();
    if (isIdle) {
      for (const transcript of this.#unplaced.values()) this.#place(transcript);
      // A chat whose response has just ended may be about to send something by itself: it has to be idle twice.
      const turn = [...this.#waitingTurns.values()].at(-1);
      if (turn !== undefined && this.#wasIdle) return void this.#read(turn);
    }
    this.#wasIdle = isIdle;
    const isWaiting = this.#waitingTurns.size > 0 || this.#unplaced.size > 0;
    if (isWaiting) this.#timer = setTimeout(() => this.#look(), LOOK_MS);
  }

  async #read(turn: Turn): Promise<void> {
    this.#waitingTurns.delete(turn.messageId);
    this.#turnBeingRead = turn;
    try {
      await this.#chat.resumeStream();
    } catch {
      // The chat itself reports its errors.
    }
    this.#turnBeingRead = undefined;
    this.#wasIdle = false;
    this.#look();
  }

  #isBusy(): boolean {
    if (this.#turnBeingRead !== undefined || this.#transport.isActive(this.#id)) return true;
    return !isSnapshot(this.#chat) && isBusy(this.#chat);
  }

  #place(transcript: Transcript): void {
    const { messageId } = transcript;
    const answer = this.#answers.get(messageId);
    // Older chats write a response at the end of the list: with a message behind it, it would appear twice.
    const mayAppend = !this.#isBusy() || (answer !== undefined && answer === this.#turnBeingRead?.messageId);
    let isPlaced = false;
    updateMessages(this.#chat, (messages) => {
      const isThere = messages.some(({ id }) => id === messageId);
      const place = messages.findIndex(({ id }) => id === answer);
      isPlaced = isThere || place !== -1 || mayAppend;
      if (!isPlaced) return messages;
      const message = userMessage<M>(transcript);
      if (isThere) return messages.map((old) => (old.id === messageId ? { ...old, parts: message.parts } : old));
      return messages.toSpliced(place === -1 ? messages.length : place, 0, message);
    });
    if (isPlaced) this.#unplaced.delete(messageId);
    else {
      this.#unplaced.set(messageId, transcript);
      this.#look();
    }
  }
}

function userMessage<M extends UIMessage>({ messageId, text, final }: Transcript): M {
  return {
    id: messageId,
    role: "user",
    parts: [{ type: "text", text, state: final ? "done" : "streaming" }],
  } as UIMessage as M;
}
