/** Microphone and loudspeaker of a live session, as a person uses them: hold to talk, leave open, only listen. */
import type { LiveChatTransport, LiveEvent } from "adk-stream-client";
import { VoiceSession, type VoiceSessionOptions } from "adk-stream-client/audio";

export type Microphone = "off" | "asking" | "talking" | "open";
export interface VoiceState {
  microphone: Microphone;
  /** Why the microphone cannot be used. */
  problem: string | undefined;
  /** The user speaks in another page: what it is called, or nothing if it has no name. */
  elsewhere: { name: string | undefined } | undefined;
}
export type Levels = Parameters<NonNullable<VoiceSessionOptions["onLevel"]>>[0];

type Live = Pick<LiveChatTransport, "sendAudio" | "listen" | "interrupt"> &
  Partial<Pick<LiveChatTransport, "startVoice" | "endVoice">>;
type Session = Pick<VoiceSession, "start" | "stop" | "isMuted">;

/** A second of silence at 16 kHz and 16 bits. A model that listens for pauses takes it for the end of the speech. */
const SILENCE_BYTES = 32_000;

export class Voice {
  /** Called many times a second, so do not render here: draw. */
  onLevels: (levels: Levels) => void = () => {};
  readonly #live: Live;
  readonly #session: Session;
  readonly #listeners = new Set<() => void>();
  #state: VoiceState = { microphone: "off", problem: undefined, elsewhere: undefined };
  #endListening: () => void = () => {};
  #running: "none" | "player" | "both" = "none";
  #wanted: "none" | "talk" | "open" = "none";
  /** Starts and stops come one after the other, however fast they are asked for. */
  #work: Promise<void> = Promise.resolve();

  constructor(live: Live, newSession: (options: VoiceSessionOptions) => Session = sessionFor(live)) {
    this.#live = live;
    this.#session = newSession({ onLevel: (levels) => this.onLevels(levels), name: deviceName() });
    this.#session.isMuted = true;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    if (this.#listeners.size === 0) this.#endListening = this.#live.listen((event) => this.#hear(event));
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#endListening();
    };
  };

  readonly state = (): VoiceState => this.#state;

  /** Plays the model's voice, without the microphone. */
  listen(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#running === "none") await this.#start("player");
    });
  }

  /** The button is held. */
  talk(): Promise<void> {
    return this.#open("talk", "talking");
  }

  /** It is let go. */
  release(): void {
    if (this.#wanted === "talk") this.#close();
  }

  toggleOpen(): Promise<void> {
    if (this.#wanted !== "open") return this.#open("open", "open");
    this.#close();
    // Gives the microphone back, so that the browser no longer shows it in use.
    return this.#inTurn(() => this.#start("player"));
  }

  end(): Promise<void> {
    this.#close();
    return this.#inTurn(async () => {
      this.#running = "none";
      await this.#session.stop();
    });
  }

  async #open(wanted: "talk" | "open", microphone: "talking" | "open"): Promise<void> {
    if (this.#state.elsewhere !== undefined) return;
    this.#wanted = wanted;
    this.#tell({ microphone: "asking", problem: undefined });
    await this.#inTurn(async () => {
      if (this.#wanted !== wanted) return;
      try {
        if (this.#running !== "both") await this.#start("both");
      } catch (error) {
        this.#wanted = "none";
        this.#tell({ microphone: "off", problem: whyNot(error) });
        return this.#start("player").catch(() => {});
      }
      if (this.#wanted !== wanted) return;
      this.#live.interrupt();
      this.#session.isMuted = false;
      this.#tell({ microphone, problem: undefined });
    });
  }

  #close(): void {
    this.#wanted = "none";
    if (!this.#session.isMuted) this.#live.sendAudio(new ArrayBuffer(SILENCE_BYTES));
    this.#session.isMuted = true;
    if (this.#state.microphone !== "off") this.#tell({ microphone: "off" });
  }

  async #start(what: "player" | "both"): Promise<void> {
    this.#running = "none";
    await this.#session.stop();
    await this.#session.start(what === "both" ? undefined : silence());
    this.#running = what;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => {});
    return done;
  }

  /** Of all pages of a chat one can speak, and the server says which. */
  #hear(event: LiveEvent): void {
    if (event.type === "voice" && event.owner === "other") {
      this.#close();
      this.#tell({ elsewhere: { name: event.name } });
    } else if (event.type === "voice" || (event.type === "connection" && event.state === "lost")) {
      this.#tell({ elsewhere: undefined });
    }
  }

  #tell(state: Partial<VoiceState>): void {
    this.#state = { ...this.#state, ...state };
    for (const listener of [...this.#listeners]) listener();
  }
}

function sessionFor(live: Live): (options: VoiceSessionOptions) => Session {
  return (options) => new VoiceSession(live, options);
}

function deviceName(): string | undefined {
  return /iPhone|iPad|Android|Windows|Macintosh|CrOS|Linux/.exec(navigator.userAgent)?.[0];
}

let silent: MediaStream | undefined;

/** A silent stream in place of a microphone: for a real one the browser would ask the person. */
function silence(): MediaStream {
  silent ??= new AudioContext().createMediaStreamDestination().stream;
  return silent;
}

function whyNot(error: unknown): string {
  const name = error instanceof Error ? error.name : "";
  if (name === "NotAllowedError") return "The browser does not let this page use the microphone.";
  if (name === "NotFoundError") return "There is no microphone.";
  if (!globalThis.isSecureContext) return "Browsers give a microphone only to pages over HTTPS or on localhost.";
  return "The microphone could not be used.";
}
