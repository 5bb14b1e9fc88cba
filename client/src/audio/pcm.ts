/** Samples between -1 and 1, and the 16-bit little-endian integers of the wire. */

export function encodePcm16(samples: Float32Array): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(samples.length * 2));
  for (let index = 0; index < samples.length; index++) {
    const sample = Math.max(-1, Math.min(1, samples[index]!));
    view.setInt16(index * 2, Math.round(sample * 0x7fff), true);
  }
  return view.buffer;
}

/** Half a sample at the end is dropped. */
export function decodePcm16(pcm: ArrayBuffer): Float32Array {
  const view = new DataView(pcm);
  const samples = new Float32Array(pcm.byteLength >> 1);
  for (let index = 0; index < samples.length; index++) samples[index] = view.getInt16(index * 2, true) / 0x8000;
  return samples;
}

/** The loudness between 0 and 1 (root mean square). */
export function loudness(samples: Float32Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return samples.length === 0 ? 0 : Math.sqrt(sum / samples.length);
}

/** All channels, mixed into one. */
export function mixDown(channels: readonly Float32Array[]): Float32Array {
  const [first, ...others] = channels;
  if (first === undefined || others.length === 0) return first ?? new Float32Array(0);
  return first.map((sample, index) => others.reduce((sum, other) => sum + other[index]!, sample) / channels.length);
}
