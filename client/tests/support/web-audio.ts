/**
 * As much of Web Audio as a voice session uses, with the real worklets: the files are loaded from where the session
 * says they are, and run in a world of their own in which no code can be made from strings.
 */
import { readFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";

interface Port {
  onmessage: ((event: { data: unknown }) => void) | null;
  postMessage(data: unknown): void;
}

export interface Processor {
  readonly port: Port;
  process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean;
}

type ProcessorClass = new () => Processor;

const BLOCK = 128;

/** Two ports, of which each hears at once what the other one says. */
function ports(): [Port, Port] {
  const make = (other: () => Port): Port => ({
    onmessage: null,
    postMessage: (data) => other().onmessage?.({ data }),
  });
  const pair: [Port, Port] = [make(() => pair[1]), make(() => pair[0])];
  return pair;
}

export class WebAudio {
  readonly sampleRate: number;
  readonly modules: string[] = [];
  readonly nodes = new Map<string, Processor>();
  isClosed = false;
  readonly tracks = [{ isStopped: false }];
  /** What the user does when the page asks for the microphone. */
  permission: () => Promise<void> = async () => {};
  readonly #processors = new Map<string, ProcessorClass>();
  #port: Port | undefined;

  constructor(t: TestContext, sampleRate: number) {
    this.sampleRate = sampleRate;
    const audio = this;
    const getUserMedia = async () => {
      await this.permission();
      const getTracks = () => this.tracks.map((track) => ({ stop: () => void (track.isStopped = true) }));
      return { getTracks };
    };
    class AudioContext {
      destination = {};
      audioWorklet = { addModule: async (url: URL | string) => audio.#load(String(url)) };
      resume = async () => {};
      close = async () => void (audio.isClosed = true);
      createMediaStreamSource = () => ({ connect() {}, disconnect() {} });
    }
    class AudioWorkletNode {
      port: Port;
      connect = () => {};
      disconnect = () => {};
      constructor(_context: unknown, name: string) {
        this.port = audio.#run(name);
      }
    }
    const globals = { AudioContext, AudioWorkletNode, navigator: { mediaDevices: { getUserMedia } } };
    for (const [name, value] of Object.entries(globals)) {
      const before = Object.getOwnPropertyDescriptor(globalThis, name);
      Object.defineProperty(globalThis, name, { value, configurable: true });
      t.after(() => {
        if (before === undefined) delete (globalThis as Record<string, unknown>)[name];
        else Object.defineProperty(globalThis, name, before);
      });
    }
  }

  /** The user speaks, block after block. */
  speak(samples: Float32Array): void {
    const microphone = this.nodes.get("adk-stream-microphone")!;
    for (let start = 0; start < samples.length; start += BLOCK) {
      microphone.process([[samples.slice(start, start + BLOCK)]], []);
    }
  }

  /** What the loudspeaker plays in so many seconds. */
  listen(seconds: number): Float32Array {
    const player = this.nodes.get("adk-stream-player")!;
    const blocks = Math.ceil((this.sampleRate * seconds) / BLOCK);
    const played = new Float32Array(blocks * BLOCK);
    for (let block = 0; block < blocks; block++) {
      player.process([], [[played.subarray(block * BLOCK, (block + 1) * BLOCK)]]);
    }
    return played;
  }

  #load(url: string): void {
    this.modules.push(url);
    const audio = this;
    const scope = {
      sampleRate: this.sampleRate,
      registerProcessor: (name: string, processor: ProcessorClass) => this.#processors.set(name, processor),
      AudioWorkletProcessor: class {
        readonly port = audio.#port!;
      },
      // The samples of the test come from outside of that world, and are to be of the same kind.
      Float32Array,
      ArrayBuffer,
      DataView,
    };
    const context = createContext(scope, { codeGeneration: { strings: false, wasm: false } });
    runInContext(readFileSync(fileURLToPath(url), "utf8"), context, { filename: url });
  }

  #run(name: string): Port {
    const [page, worklet] = ports();
    this.#port = worklet;
    const Processor = this.#processors.get(name);
    if (Processor === undefined) throw new Error(`no worklet is registered as ${name}`);
    this.nodes.set(name, new Processor());
    return page;
  }
}
