/** Two small computed pieces of music, a calm one and a brisk one. Each leads back to its start. */
export type Track = 1 | 2;

interface Note {
  /** In beats from the start of the loop. */
  at: number;
  /** As in MIDI, 69 is A4. None for a stroke of the brush. */
  pitch?: number;
  beats: number;
  volume: number;
}

interface Loop {
  title: string;
  beatsPerMinute: number;
  beats: number;
  /** The strength of each harmonic of a tone, from the first one. */
  timbre: number[];
  notes: Note[];
}

export const LOOPS: Record<Track, Loop> = {
  1: {
    title: "Calm water",
    beatsPerMinute: 72,
    beats: 16,
    timbre: [1, 0.25, 0.08],
    notes: [
      ...chords([57, 60, 64, 67], 0),
      ...chords([53, 57, 60, 64], 4),
      ...chords([55, 59, 62, 67], 8),
      ...chords([52, 55, 59, 64], 12),
    ],
  },
  2: {
    title: "City bicycle",
    beatsPerMinute: 128,
    beats: 16,
    timbre: [1, 0, 0.33, 0, 0.2, 0, 0.14],
    notes: [
      ...[45, 45, 48, 48, 50, 50, 43, 43].map((pitch, index) => ({ at: index * 2, pitch, beats: 1.5, volume: 0.5 })),
      ...[69, 72, 76, 72, 74, 76, 79, 76, 69, 72, 76, 81, 79, 76, 74, 71].map(melody),
      ...Array.from({ length: 32 }, (_, index) => ({
        at: index / 2,
        beats: 0.12,
        volume: index % 2 === 0 ? 0.05 : 0.12,
      })),
    ],
  },
};

function melody(pitch: number, index: number): Note {
  return { at: index + (index % 2) / 8, pitch, beats: 0.6, volume: 0.28 };
}

/** One note after the other, upwards and back. */
function chords(pitches: number[], start: number): Note[] {
  const bass = { at: start, pitch: pitches[0]! - 12, beats: 4, volume: 0.4 };
  const turns = [0, 1, 2, 3, 2, 1, 2, 3];
  return [
    bass,
    ...turns.map((turn, index) => ({ at: start + index / 2, pitch: pitches[turn]!, beats: 2.5, volume: 0.25 })),
  ];
}

export function renderLoop(track: Track, rate: number): Float32Array<ArrayBuffer> {
  const { beatsPerMinute, beats, timbre, notes } = LOOPS[track];
  const beat = (60 / beatsPerMinute) * rate;
  const samples = new Float32Array(Math.round(beats * beat));
  const wave = waveOf(timbre);
  for (const { at, pitch, beats: length, volume } of notes) {
    const start = Math.round(at * beat);
    const count = Math.round(length * beat);
    const step = pitch === undefined ? undefined : (WAVE * 440 * 2 ** ((pitch - 69) / 12)) / rate;
    for (let index = 0; index < count; index++) {
      const place = (start + index) % samples.length; // what outlasts the loop sounds on in its beginning
      const sound = step === undefined ? noise(index) : wave[Math.floor(step * index) % WAVE]!;
      samples[place]! += sound * envelope(index / count, index / rate) * volume;
    }
  }
  return levelled(samples);
}

/** One period of a tone: to look it up is ten times as fast as to compute it for each sample. */
const WAVE = 4_096;

function waveOf(timbre: number[]): Float32Array {
  return Float32Array.from({ length: WAVE }, (_, index) =>
    timbre.reduce(
      (sum, strength, harmonic) => sum + strength * Math.sin((2 * Math.PI * index * (harmonic + 1)) / WAVE),
      0,
    ),
  );
}

/** The same noise each time, so that the loop always sounds the same. */
function noise(index: number): number {
  const wave = Math.sin(index * 12.9898) * 43_758.5453;
  return 2 * (wave - Math.floor(wave)) - 1;
}

/** Struck within 8 ms, then fading to nothing. */
function envelope(share: number, seconds: number): number {
  return Math.min(1, seconds / 0.008) * (1 - share) ** 2;
}

function levelled(samples: Float32Array<ArrayBuffer>): Float32Array<ArrayBuffer> {
  let peak = 0;
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  return samples.map((sample) => (sample / peak) * 0.9);
}
