import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BrowserToolList, browserTools } from "./index.ts";
import { music } from "./music.ts";

/** What is used of WebAudio, and a browser that decides whether it may be heard. */
class Context {
  static made: Context[] = [];
  static mayPlay = true;
  state = "suspended";
  currentTime = 0;
  destination = {};
  started: Source[] = [];
  #allow: (() => void)[] = [];

  constructor() {
    Context.made.push(this);
  }

  createBuffer(_: number, length: number, sampleRate: number) {
    return {
      length,
      sampleRate,
      samples: new Float32Array(0) as Float32Array,
      copyToChannel(samples: Float32Array) {
        this.samples = samples;
      },
    };
  }

  resume(): Promise<void> {
    if (Context.mayPlay) {
      this.state = "running";
      for (const allow of this.#allow.splice(0)) allow();
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#allow.push(resolve));
  }
}

class Gain {
  gain = {
    value: 0,
    setTargetAtTime: (value: number) => {
      this.gain.value = value;
    },
  };
  connect<T>(next: T): T {
    return next;
  }
}

class Source {
  isStopped = false;
  gain: Gain | undefined;
  buffer: { samples: Float32Array };
  loop: boolean;
  readonly #context: Context;

  constructor(context: Context, options: { buffer: { samples: Float32Array }; loop: boolean }) {
    this.#context = context;
    this.buffer = options.buffer;
    this.loop = options.loop;
  }

  connect(gain: Gain): Gain {
    this.gain = gain;
    return gain;
  }

  start(): void {
    this.#context.started.push(this);
  }

  stop(): void {
    this.isStopped = true;
  }
}

vi.stubGlobal("AudioContext", Context);
vi.stubGlobal("GainNode", Gain);
vi.stubGlobal("AudioBufferSourceNode", Source);

const { run } = browserTools.change_bgm!;

function sources(): Source[] {
  return Context.made.flatMap(({ started }) => started);
}

beforeEach(() => {
  Context.mayPlay = true;
});
afterEach(() => {
  act(() => music.stop());
  cleanup();
  vi.useRealTimers();
});

test("a track plays in a loop, softly, and the next one takes its place", async () => {
  expect(await run({ track: 1 })).toEqual({ success: true, track: 1, message: 'Track 1, "Calm water", is playing.' });
  const first = sources().at(-1)!;
  expect([first.loop, first.buffer.samples.length > 20_000, first.isStopped]).toEqual([true, true, false]);
  expect(first.gain!.gain.value).toBeLessThanOrEqual(0.2);
  await run({ track: 2 });
  const second = sources().at(-1)!;
  expect(first.isStopped).toBe(true);
  expect(first.gain!.gain.value).toBe(0);
  expect(second.isStopped).toBe(false);
  expect(second.buffer.samples.length).not.toBe(first.buffer.samples.length);
  expect(Context.made).toHaveLength(1);
});

test.each([{ track: 3 }, { track: "x" }, {}, null, undefined])("there is no track for %j", async (input) => {
  const before = sources().length;
  await expect(run(input)).rejects.toThrow("only the tracks 1 and 2");
  expect(sources()).toHaveLength(before);
});

test("the list tells what plays, and turns it off", async () => {
  render(<BrowserToolList />);
  expect(screen.queryByRole("button")).toBeNull();
  await act(() => run({ track: 2 }));
  expect(screen.getByText("Playing City bicycle")).toBeDefined();
  fireEvent.click(screen.getByRole("button", { name: "Turn the music off" }));
  expect(sources().at(-1)!.isStopped).toBe(true);
  expect(screen.queryByText(/Playing/)).toBeNull();
});

test("a browser that lets nobody hear it yet is waited for, and the agent is told", async () => {
  vi.useFakeTimers();
  Context.mayPlay = false;
  Context.made.at(-1)!.state = "suspended";
  render(<BrowserToolList />);
  const changing = run({ track: 1 });
  await act(() => vi.advanceTimersByTimeAsync(1_000));
  expect(await changing).toMatchObject({
    success: true,
    message: expect.stringContaining("as soon as the user clicks"),
  });
  expect(screen.getByText("Click anywhere to hear Calm water")).toBeDefined();
  Context.mayPlay = true;
  await act(async () => {
    fireEvent.pointerDown(document.body);
    await vi.advanceTimersByTimeAsync(0);
  });
  expect(screen.getByText("Playing Calm water")).toBeDefined();
});
