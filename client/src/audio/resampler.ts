/**
 * Brings samples to another rate, block after block, as if they were one long block.
 *
 * A windowed sinc for each of the positions that an output sample can have between two input samples. The rates of
 * audio devices have few of them: one from 48 to 16 kHz, 160 from 44.1 kHz. Positions are counted in whole numbers, so
 * that nothing drifts apart in an hour of talk.
 */

/** Zero crossings of the sinc on each side. */
const CROSSINGS = 24;
/** Where the filter begins to fall, so that it is down where the lower rate ends. */
const PASSED = 0.9;
const KAISER_BETA = 8;

export class Resampler {
  /** One output sample is `#up` / `#down` input samples after the last. */
  readonly #up: number;
  readonly #down: number;
  readonly #half: number;
  readonly #filters: Float32Array[];
  /** Input that later outputs still need; begins with silence, so that the first output is the first input. */
  #kept: Float32Array;
  /** Where the next output is: its sample in `#kept`, and how far between that and the next one. */
  #position: number;
  #fraction = 0;

  constructor(from: number, to: number) {
    const divisor = greatestCommonDivisor(from, to);
    this.#up = from / divisor;
    this.#down = to / divisor;
    const cutoff = from === to ? 1 : PASSED * Math.min(1, to / from);
    this.#half = Math.ceil(CROSSINGS / cutoff);
    this.#filters = Array.from({ length: this.#down }, (_, fraction) =>
      sinc(fraction / this.#down, cutoff, this.#half),
    );
    this.#kept = new Float32Array(this.#half - 1);
    this.#position = this.#half - 1;
  }

  process(input: Float32Array): Float32Array {
    if (this.#up === this.#down) return input;
    const samples = new Float32Array(this.#kept.length + input.length);
    samples.set(this.#kept);
    samples.set(input, this.#kept.length);
    const output: number[] = [];
    while (this.#position + this.#half < samples.length) {
      const filter = this.#filters[this.#fraction]!;
      const start = this.#position - this.#half + 1;
      let sum = 0;
      for (let tap = 0; tap < filter.length; tap++) sum += filter[tap]! * samples[start + tap]!;
      output.push(sum);
      this.#fraction += this.#up;
      this.#position += Math.floor(this.#fraction / this.#down);
      this.#fraction %= this.#down;
    }
    const unneeded = Math.min(samples.length, this.#position - this.#half + 1);
    this.#kept = samples.slice(unneeded);
    this.#position -= unneeded;
    return Float32Array.from(output);
  }
}

/** Weights for the `half` samples before and after a point that is `fraction` behind a sample. They add up to 1. */
function sinc(fraction: number, cutoff: number, half: number): Float32Array {
  const weights = Array.from({ length: 2 * half }, (_, tap) => {
    const distance = tap - half + 1 - fraction;
    const x = Math.PI * cutoff * distance;
    const window = bessel(KAISER_BETA * Math.sqrt(Math.max(0, 1 - (distance / half) ** 2))) / bessel(KAISER_BETA);
    return (x === 0 ? 1 : Math.sin(x) / x) * window;
  });
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return Float32Array.from(weights, (weight) => weight / sum);
}

/** The modified Bessel function of the first kind and order zero, of which Kaiser's window is made. */
function bessel(x: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-10; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
