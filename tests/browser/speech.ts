/** What the fake microphone hears, over and over: something that goes up and down as a voice does, then a pause. */
import { writeFile } from "node:fs/promises";

const RATE = 48_000;
const SPOKEN_MS = 1_500;
/** Longer than the half second that ends a sentence. */
const PAUSE_MS = 1_000;

export async function writeSpeech(path: string): Promise<void> {
  const samples = new Int16Array((RATE * (SPOKEN_MS + PAUSE_MS)) / 1000);
  const spoken = (RATE * SPOKEN_MS) / 1000;
  for (let index = 0; index < spoken; index++) {
    const time = index / RATE;
    const syllable = Math.sin(2 * Math.PI * 5 * time) ** 2; // steady sound would be taken for noise, and removed
    const voice = [1, 2, 3, 4].reduce((sum, n) => sum + Math.sin(2 * Math.PI * 160 * n * time) / n, 0);
    samples[index] = Math.round(9_000 * (0.3 + 0.7 * syllable) * voice);
  }
  const header = Buffer.alloc(44);
  header.write("RIFF", 0);
  header.writeUInt32LE(36 + samples.byteLength, 4);
  header.write("WAVEfmt ", 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20); // PCM
  header.writeUInt16LE(1, 22); // one channel
  header.writeUInt32LE(RATE, 24);
  header.writeUInt32LE(2 * RATE, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36);
  header.writeUInt32LE(samples.byteLength, 40);
  await writeFile(path, Buffer.concat([header, new Uint8Array(samples.buffer)]));
}
