/** The microphone to the server, and the model's voice to the loudspeaker. */
import type { LiveEvent } from "../frames.ts";
import { type Captured, MICROPHONE, PLAYER, type Played, type PlayerCommand } from "./messages.ts";

/** The part of the transport that is used here. */
export interface VoiceTransport {
  sendAudio(pcm: ArrayBuffer): void;
  listen(listener: (event: LiveEvent) => void): () => void;
  /** The microphone is open from here on, and closed: of all clients of a chat one can speak. */
  startVoice?(options?: { name?: string }): void;
  endVoice?(): void;
}

export interface VoiceSessionOptions {
  /** How loud the user and the model are, each between 0 and 1, some 20 to 50 times a second. */
  onLevel?: (level: { microphone: number; player: number }) => void;
  /** Where the worklets are, for pages whose bundler does not find them beside this module. */
  worklets?: { microphone: string | URL; player: string | URL };
  /** What the user's other pages call this one while it speaks. */
  name?: string;
  /** What is asked of the microphone. */
  constraints?: MediaTrackConstraints;
}

/** Without the first of these the model would hear itself. */
const CONSTRAINTS: MediaTrackConstraints = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };

/** What a running session holds, and has to give back. */
interface Running {
  hasMicrophone: boolean;
  context: AudioContext;
  release: (() => void)[];
}

export class VoiceSession {
  readonly #transport: VoiceTransport;
  readonly #options: VoiceSessionOptions;
  #running: Running | undefined;
  #isMuted = false;
  #isSpeaking = false;
  #level = { microphone: 0, player: 0 };

  constructor(transport: VoiceTransport, options: VoiceSessionOptions = {}) {
    this.#transport = transport;
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** The model hears silence; what it says is still to be heard. */
  get isMuted(): boolean {
    return this.#isMuted;
  }

  set isMuted(isMuted: boolean) {
    this.#isMuted = isMuted;
    this.#tellWhoSpeaks();
    if (isMuted) this.#tellLevel({ microphone: 0 });
  }

  /**
   * Call this from a click: browsers give neither microphone nor sound otherwise. A microphone that is handed over
   * stays the caller's; otherwise the user is asked for one.
   */
  async start(microphone?: MediaStream): Promise<void> {
    if (this.#running !== undefined) return;
    const running: Running = { hasMicrophone: false, context: new AudioContext(), release: [] };
    this.#running = running;
    try {
      await running.context.resume();
      await this.#startPlayer(running);
      await this.#startMicrophone(running, microphone);
    } catch (error) {
      if (this.#running === running) await this.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    this.#tellWhoSpeaks();
    release(running);
    this.#tellLevel({ microphone: 0, player: 0 });
    await running.context.close();
  }

  async #startPlayer(running: Running): Promise<void> {
    const { context } = running;
    await context.audioWorklet.addModule(
      this.#options.worklets?.player ?? new URL("./player.worklet.js", import.meta.url),
    );
    if (this.#running !== running) return;
    const player = new AudioWorkletNode(context, PLAYER, { numberOfInputs: 0, outputChannelCount: [1] });
    player.port.onmessage = ({ data }: MessageEvent<Played>) => this.#tellLevel({ player: data.level });
    player.connect(context.destination);
    const tell = (command: PlayerCommand) => player.port.postMessage(command);
    const endListening = this.#transport.listen((event) => {
      if (event.type === "audio") tell({ pcm: event.pcm, rate: event.rate });
      else if (event.type === "audio-clear") tell({});
    });
    running.release.push(endListening, () => player.disconnect());
  }

  async #startMicrophone(running: Running, given: MediaStream | undefined): Promise<void> {
    const { context } = running;
    await context.audioWorklet.addModule(
      this.#options.worklets?.microphone ?? new URL("./microphone.worklet.js", import.meta.url),
    );
    const audio = { ...CONSTRAINTS, ...this.#options.constraints };
    const stream = given ?? (await navigator.mediaDevices.getUserMedia({ audio }));
    running.release.push(() => {
      if (given === undefined) for (const track of stream.getTracks()) track.stop();
    });
    // Stopped while the user was asked: the microphone that came after all is given back.
    if (this.#running !== running) return release(running);
    const source = context.createMediaStreamSource(stream);
    const microphone = new AudioWorkletNode(context, MICROPHONE, { numberOfOutputs: 0 });
    microphone.port.onmessage = ({ data }: MessageEvent<Captured>) => {
      if (this.#isMuted || this.#running !== running) return;
      this.#transport.sendAudio(data.pcm);
      this.#tellLevel({ microphone: data.level });
    };
    source.connect(microphone);
    running.release.push(() => source.disconnect());
    running.hasMicrophone = true;
    this.#tellWhoSpeaks();
  }

  #tellWhoSpeaks(): void {
    const isSpeaking = this.#running?.hasMicrophone === true && !this.#isMuted;
    if (isSpeaking === this.#isSpeaking) return;
    this.#isSpeaking = isSpeaking;
    if (isSpeaking) this.#transport.startVoice?.({ name: this.#options.name });
    else this.#transport.endVoice?.();
  }

  #tellLevel(level: Partial<{ microphone: number; player: number }>): void {
    this.#level = { ...this.#level, ...level };
    this.#options.onLevel?.(this.#level);
  }
}

function release(running: Running): void {
  for (const giveBack of running.release.splice(0)) giveBack();
}
