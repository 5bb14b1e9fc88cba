/** The pure parts of the audio: samples, rates and the buffer before the loudspeaker. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeBase64, encodeBase64 } from "../src/base64.ts";
import { JitterBuffer } from "../src/audio/jitter-buffer.ts";
import { decodePcm16, encodePcm16, loudness, mixDown } from "../src/audio/pcm.ts";
import { Resampler } from "../src/audio/resampler.ts";

const RATES = [
  [48_000, 16_000],
  [44_100, 16_000],
  [96_000, 16_000],
  [24_000, 48_000],
  [24_000, 44_100],
  [8_000, 16_000],
] as const;

function tone(frequency: number, rate: number, seconds: number): Float32Array {
  return Float32Array.from({ length: Math.round(rate * seconds) }, (_, n) =>
    Math.sin((2 * Math.PI * frequency * n) / rate),
  );
}

function decibels(ratio: number): number {
  return 20 * Math.log10(ratio);
}

/** Without the beginning and the end, where the filter still sees silence. */
function middle(samples: Float32Array): Float32Array {
  return samples.subarray(samples.length / 4, (samples.length * 3) / 4);
}

test("samples become little-endian integers and come back, and what is too loud is cut", () => {
  const bytes = new Uint8Array(encodePcm16(Float32Array.from([0, 1, -1, 2, -2, 0.5])));
  assert.deepEqual([...bytes], [0, 0, 0xff, 0x7f, 0x01, 0x80, 0xff, 0x7f, 0x01, 0x80, 0x00, 0x40]);
  const samples = Float32Array.from({ length: 1000 }, (_, n) => Math.sin(n));
  const back = decodePcm16(encodePcm16(samples));
  for (const [place, sample] of samples.entries()) assert.ok(Math.abs(sample - back[place]!) < 1e-4);
});

test("half a sample at the end of a packet is passed over", () => {
  assert.deepEqual([...decodePcm16(Uint8Array.from([0x00, 0x40, 0x01]).buffer)], [0.5]);
});

test("loudness is between 0 and 1", () => {
  assert.equal(loudness(new Float32Array(0)), 0);
  assert.equal(loudness(Float32Array.from([1, -1, 1])), 1);
  assert.ok(Math.abs(loudness(tone(100, 16_000, 1)) - Math.SQRT1_2) < 1e-3);
});

test("several channels become their mean", () => {
  assert.deepEqual([...mixDown([Float32Array.from([1, 0]), Float32Array.from([0, -1])])], [0.5, -0.5]);
  assert.equal(mixDown([]).length, 0);
});

test("base64 of any length comes back, and what is none is refused", () => {
  const bytes = Uint8Array.from({ length: 100_001 }, (_, n) => n * 7);
  assert.equal(encodeBase64(bytes.buffer), Buffer.from(bytes).toString("base64"));
  assert.deepEqual(new Uint8Array(decodeBase64(encodeBase64(bytes.buffer))!), bytes);
  assert.equal(decodeBase64("no base64!"), undefined);
});

for (const [from, to] of RATES) {
  test(`${from} to ${to}: speech is the same tone at the same time and loudness`, () => {
    for (const frequency of [200, 1000, 3000]) {
      const output = new Resampler(from, to).process(tone(frequency, from, 0.5));
      const wanted = tone(frequency, to, 0.5).subarray(0, output.length);
      const difference = middle(output).map((sample, place) => sample - middle(wanted)[place]!);
      assert.ok(decibels(loudness(difference) / loudness(wanted)) < -60, `${frequency} Hz`);
    }
  });

  test(`${from} to ${to}: blocks of any size give what one block gives`, () => {
    const input = tone(440, from, 0.2);
    const whole = new Resampler(from, to).process(input);
    for (const size of [1, 7, 128, 1000]) {
      const resampler = new Resampler(from, to);
      const parts: number[] = [];
      for (let start = 0; start < input.length; start += size)
        parts.push(...resampler.process(input.subarray(start, start + size)));
      assert.deepEqual(Float32Array.from(parts), whole, `blocks of ${size}`);
    }
  });

  test(`${from} to ${to}: ten seconds have the length of ten seconds`, () => {
    const resampler = new Resampler(from, to);
    let length = 0;
    for (let second = 0; second < 10; second++) length += resampler.process(new Float32Array(from)).length;
    // What the filter keeps, and nothing that grows with time.
    assert.ok(10 * to - length >= 0 && 10 * to - length < 0.01 * to, `${10 * to - length} samples are missing`);
  });
}

test("what the lower rate cannot carry is not folded into the speech", () => {
  for (const frequency of [9_000, 10_000, 12_000, 15_500, 20_000]) {
    const output = new Resampler(48_000, 16_000).process(tone(frequency, 48_000, 0.5));
    assert.ok(decibels(loudness(middle(output)) / Math.SQRT1_2) < -60, `${frequency} Hz`);
  }
});

test("the same rate changes nothing", () => {
  const input = tone(440, 16_000, 0.1);
  assert.equal(new Resampler(16_000, 16_000).process(input), input);
});

function pulled(buffer: JitterBuffer, length: number): number[] {
  const output = new Float32Array(length).fill(9);
  buffer.pull(output);
  return [...output];
}

test("playing begins when the target is there, and packets of any size follow one another", () => {
  const buffer = new JitterBuffer(4);
  assert.deepEqual(pulled(buffer, 2), [0, 0]);
  buffer.push(Float32Array.from([1, 2, 3]));
  assert.deepEqual(pulled(buffer, 2), [0, 0]);
  buffer.push(new Float32Array(0));
  buffer.push(Float32Array.from([4, 5, 6]));
  assert.deepEqual(pulled(buffer, 2), [1, 2]);
  assert.deepEqual(pulled(buffer, 3), [3, 4, 5]);
  assert.equal(buffer.length, 1);
});

test("what runs dry is filled with silence, and gathers anew before it goes on", () => {
  const buffer = new JitterBuffer(2);
  buffer.push(Float32Array.from([1, 2, 3]));
  assert.deepEqual(pulled(buffer, 4), [1, 2, 3, 0]);
  buffer.push(Float32Array.from([4]));
  assert.deepEqual(pulled(buffer, 1), [0]);
  buffer.push(Float32Array.from([5]));
  assert.deepEqual(pulled(buffer, 3), [4, 5, 0]);
});

test("a word that is shorter than the target is played all the same", () => {
  const buffer = new JitterBuffer(4);
  buffer.push(Float32Array.from([1, 2]));
  assert.deepEqual(
    [pulled(buffer, 2), pulled(buffer, 2), pulled(buffer, 2)],
    [
      [0, 0],
      [0, 0],
      [1, 2],
    ],
  );
  buffer.push(Float32Array.from([3]));
  assert.deepEqual(
    [pulled(buffer, 2), pulled(buffer, 2), pulled(buffer, 2)],
    [
      [0, 0],
      [0, 0],
      [3, 0],
    ],
  );
});

test("what was interrupted is forgotten, and the next speech gathers anew", () => {
  const buffer = new JitterBuffer(2);
  buffer.push(Float32Array.from([1, 2, 3, 4]));
  assert.deepEqual(pulled(buffer, 1), [1]);
  buffer.clear();
  assert.equal(buffer.length, 0);
  assert.deepEqual(pulled(buffer, 2), [0, 0]);
  buffer.push(Float32Array.from([5]));
  assert.deepEqual(pulled(buffer, 1), [0]);
  buffer.push(Float32Array.from([6]));
  assert.deepEqual(pulled(buffer, 2), [5, 6]);
});
