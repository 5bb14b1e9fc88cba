/** Runs in the audio thread: the model's voice, at whatever rate it comes, to the device's rate. */
import { JitterBuffer } from "./jitter-buffer.ts";
import { PLAYER, type Played, type PlayerCommand } from "./messages.ts";
import { decodePcm16, loudness } from "./pcm.ts";
import { Resampler } from "./resampler.ts";

declare const sampleRate: number;
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}

/** How late the network may be without a gap in the sound. */
const TARGET_S = 0.08;
/** Blocks of the device between two reports of the level: some 20 a second. */
const BLOCKS_PER_REPORT = 16;

class Player extends AudioWorkletProcessor {
  #rate = 0;
  #buffer = new JitterBuffer(0);
  #resampler = new Resampler(sampleRate, sampleRate);
  /** At the device's rate, and not played yet. */
  #ready: Float32Array = new Float32Array(0);
  #blocks = 0;
  #loudest = 0;
  #isAudible = false;

  constructor() {
    super();
    this.port.onmessage = ({ data }: MessageEvent<PlayerCommand>) => {
      if (data.pcm === undefined) this.#forget();
      else this.#take(data.pcm, data.rate);
    };
  }

  process(_inputs: Float32Array[][], [channels = []]: Float32Array[][]): boolean {
    const [first, ...others] = channels;
    if (first === undefined) return true;
    // No more is resampled than is played now: a minute of speech that came at once would stop the audio thread.
    if (this.#rate !== 0) while (this.#ready.length < first.length) this.#resample(first.length);
    first.set(this.#ready.subarray(0, first.length));
    this.#ready = this.#ready.slice(first.length);
    for (const other of others) other.set(first);
    this.#report(loudness(first));
    return true;
  }

  #take(pcm: ArrayBuffer, rate: number): void {
    if (rate !== this.#rate) {
      this.#rate = rate;
      this.#buffer = new JitterBuffer(rate * TARGET_S);
      this.#resampler = new Resampler(rate, sampleRate);
    }
    this.#buffer.push(decodePcm16(pcm));
  }

  #forget(): void {
    this.#buffer.clear();
    this.#ready = new Float32Array(0);
  }

  #resample(wanted: number): void {
    const block = new Float32Array(Math.ceil((wanted * this.#rate) / sampleRate));
    this.#buffer.pull(block);
    const more = this.#resampler.process(block);
    const ready = new Float32Array(this.#ready.length + more.length);
    ready.set(this.#ready);
    ready.set(more, this.#ready.length);
    this.#ready = ready;
  }

  #report(level: number): void {
    this.#loudest = Math.max(this.#loudest, level);
    this.#blocks = (this.#blocks + 1) % BLOCKS_PER_REPORT;
    if (this.#blocks !== 0) return;
    if (this.#loudest > 0 || this.#isAudible) this.port.postMessage({ level: this.#loudest } satisfies Played);
    this.#isAudible = this.#loudest > 0;
    this.#loudest = 0;
  }
}

registerProcessor(PLAYER, Player);
