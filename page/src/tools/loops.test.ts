import { expect, test } from "vitest";
import { LOOPS, renderLoop, type Track } from "./loops.ts";

const RATE = 22_050;
const TRACKS: Track[] = [1, 2];

function meanSquare(samples: Float32Array): number {
  return samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
}

function peak(samples: Float32Array): number {
  return samples.reduce((highest, sample) => Math.max(highest, Math.abs(sample)), 0);
}

/** From each sample to the next, the first one from the last. */
function steps(samples: Float32Array): Float32Array {
  return samples.map((sample, index) => sample - samples.at(index - 1)!);
}

test.each(TRACKS)("loop %i can be heard, and is not distorted", (track) => {
  const samples = renderLoop(track, RATE);
  const { beats, beatsPerMinute } = LOOPS[track];
  expect(samples.length / RATE).toBeCloseTo((beats * 60) / beatsPerMinute, 2);
  expect(peak(samples)).toBeLessThanOrEqual(1);
  expect(meanSquare(samples)).toBeGreaterThan(0.001);
  expect(samples.every(Number.isFinite)).toBe(true);
});

test.each(TRACKS)("loop %i is never silent for half a second", (track) => {
  const samples = renderLoop(track, RATE);
  for (let start = 0; start + RATE / 2 <= samples.length; start += RATE / 2)
    expect(meanSquare(samples.subarray(start, start + RATE / 2)), `at ${start / RATE} s`).toBeGreaterThan(0.0001);
});

test.each(TRACKS)("loop %i goes on where it ends, without a click", (track) => {
  expect(Math.abs(steps(renderLoop(track, RATE))[0]!)).toBeLessThan(0.02);
});

test("what was struck last sounds on in the beginning", () => {
  expect(renderLoop(1, RATE)[0]).not.toBe(0); // all that is struck there begins with silence
});

test("the two can be told apart: one is calm, the other brisk and bright", () => {
  const [calm, brisk] = TRACKS.map((track) => {
    const samples = renderLoop(track, RATE);
    return meanSquare(steps(samples)) / meanSquare(samples);
  });
  expect(brisk).toBeGreaterThan(2 * calm!);
});
