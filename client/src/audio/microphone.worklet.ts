/** Runs in the audio thread: the microphone at the device's rate becomes packets of 20 ms at 16 kHz. */
import { type Captured, MICROPHONE, VOICE_RATE } from "./messages.ts";
import { encodePcm16, loudness, mixDown } from "./pcm.ts";
import { Resampler } from "./resampler.ts";

declare const sampleRate: number;
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}

const PACKET = VOICE_RATE / 50;

class Microphone extends AudioWorkletProcessor {
  readonly #resampler = new Resampler(sampleRate, VOICE_RATE);
  readonly #packet = new Float32Array(PACKET);
  #filled = 0;

  process([channels = []]: Float32Array[][]): boolean {
    for (const sample of this.#resampler.process(mixDown(channels))) {
      this.#packet[this.#filled++] = sample;
      if (this.#filled === PACKET) this.#post();
    }
    return true;
  }

  #post(): void {
    this.#filled = 0;
    const captured: Captured = { pcm: encodePcm16(this.#packet), level: loudness(this.#packet) };
    this.port.postMessage(captured, [captured.pcm]);
  }
}

registerProcessor(MICROPHONE, Microphone);
