/** `change_bgm`: the music of this page. */
import { LOOPS, renderLoop, type Track } from "./loops.ts";

export interface NowPlaying {
  track: Track;
  title: string;
  /** The browser lets no page make a sound before it was clicked or typed into. */
  isWaiting: boolean;
}

const VOLUME = 0.12;
const FADE_S = 0.4;
const RATE = 22_050;
/** A browser that lets the page play says so at once; one that does not says nothing. */
const ALLOWED_WITHIN_MS = 1_000;

class Music {
  #context: AudioContext | undefined;
  #playing: { gain: GainNode; source: AudioBufferSourceNode } | undefined;
  #now: NowPlaying | undefined;
  readonly #listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
  readonly now = (): NowPlaying | undefined => this.#now;

  async change(input: unknown): Promise<unknown> {
    const track = trackOf(input);
    const { title } = LOOPS[track];
    const context = (this.#context ??= new AudioContext());
    this.#fadeOut();
    this.#playing = fadeIn(context, loopBuffer(context, track));
    const isAllowed = await this.#resume(context);
    this.#tell({ track, title, isWaiting: !isAllowed });
    const message = isAllowed
      ? `Track ${track}, "${title}", is playing.`
      : `Track ${track}, "${title}", plays as soon as the user clicks on the page.`;
    return { success: true, track, message };
  }

  stop(): void {
    this.#fadeOut();
    this.#tell(undefined);
  }

  async #resume(context: AudioContext): Promise<boolean> {
    if (context.state === "running") return true;
    const resumed = context.resume().then(() => {
      if (this.#now?.isWaiting) this.#tell({ ...this.#now, isWaiting: false });
      return true;
    });
    const tooLate = new Promise<false>((resolve) => setTimeout(resolve, ALLOWED_WITHIN_MS, false));
    if (await Promise.race([resumed, tooLate])) return true;
    const goOn = () => void context.resume();
    for (const event of ["pointerdown", "keydown"]) window.addEventListener(event, goOn, { once: true });
    return false;
  }

  #fadeOut(): void {
    if (this.#playing === undefined || this.#context === undefined) return;
    const { gain, source } = this.#playing;
    const end = this.#context.currentTime + FADE_S;
    gain.gain.setTargetAtTime(0, this.#context.currentTime, FADE_S / 4);
    source.stop(end);
    this.#playing = undefined;
  }

  #tell(now: NowPlaying | undefined): void {
    this.#now = now;
    for (const listener of [...this.#listeners]) listener();
  }
}

export const music = new Music();

function fadeIn(context: AudioContext, buffer: AudioBuffer) {
  const gain = new GainNode(context, { gain: 0 });
  gain.gain.setTargetAtTime(VOLUME, context.currentTime, FADE_S / 4);
  const source = new AudioBufferSourceNode(context, { buffer, loop: true });
  source.connect(gain).connect(context.destination);
  source.start();
  return { gain, source };
}

function loopBuffer(context: AudioContext, track: Track): AudioBuffer {
  const samples = renderLoop(track, RATE);
  const buffer = context.createBuffer(1, samples.length, RATE);
  buffer.copyToChannel(samples, 0);
  return buffer;
}

function trackOf(input: unknown): Track {
  const track = Number((input as { track?: unknown } | null)?.track);
  if (track !== 1 && track !== 2) throw new Error("There are only the tracks 1 and 2.");
  return track;
}
