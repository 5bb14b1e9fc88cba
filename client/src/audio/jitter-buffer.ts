/**
 * Voice that has come and is not yet played. Playing begins when `target` samples are there, so that the next packets
 * may be late. It also begins when that much time has passed, since a single word may be shorter.
 */
export class JitterBuffer {
  readonly #target: number;
  readonly #chunks: Float32Array[] = [];
  /** How much of the first chunk is played. */
  #offset = 0;
  #length = 0;
  #isPlaying = false;
  #waited = 0;

  /** `target` is in samples. */
  constructor(target: number) {
    this.#target = target;
  }

  /** Samples that wait to be played. */
  get length(): number {
    return this.#length;
  }

  push(samples: Float32Array): void {
    if (samples.length === 0) return;
    this.#chunks.push(samples);
    this.#length += samples.length;
  }

  /** Fills `output`, with silence where there is nothing, and returns how many samples of it are speech. */
  pull(output: Float32Array): number {
    output.fill(0);
    if (!this.#isPlaying && !this.#mayBegin(output.length)) return 0;
    let filled = 0;
    while (filled < output.length && this.#length > 0) {
      const chunk = this.#chunks[0]!;
      const part = chunk.subarray(this.#offset, this.#offset + output.length - filled);
      output.set(part, filled);
      filled += part.length;
      this.#offset += part.length;
      this.#length -= part.length;
      if (this.#offset === chunk.length) {
        this.#chunks.shift();
        this.#offset = 0;
      }
    }
    this.#isPlaying = this.#length > 0;
    return filled;
  }

  clear(): void {
    this.#chunks.length = 0;
    this.#offset = 0;
    this.#length = 0;
    this.#isPlaying = false;
    this.#waited = 0;
  }

  #mayBegin(time: number): boolean {
    if (this.#length === 0) return false;
    this.#waited += time;
    this.#isPlaying = this.#length >= this.#target || this.#waited > this.#target;
    if (this.#isPlaying) this.#waited = 0;
    return this.#isPlaying;
  }
}
