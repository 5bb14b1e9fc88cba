/** What would be heard: every sound of the page goes through a meter on its way to the loudspeaker. */
import type { Page } from "playwright-core";

declare global {
  interface Window {
    loudspeaker: { meters: AnalyserNode[]; isSounding: boolean; hasSounded: boolean };
  }
}

/** Runs in the page, before anything of its own. */
export function listenToLoudspeaker(): void {
  const connect = AudioNode.prototype.connect as (this: AudioNode, ...args: unknown[]) => unknown;
  const meters = new Map<AudioNode, AnalyserNode>();
  const loudspeaker = { meters: [] as AnalyserNode[], isSounding: false, hasSounded: false };
  window.loudspeaker = loudspeaker;
  AudioNode.prototype.connect = function (this: AudioNode, ...args: unknown[]) {
    const [target] = args;
    if (!(target instanceof AudioDestinationNode)) return connect.apply(this, args);
    let meter = meters.get(target);
    if (meter === undefined) {
      meter = target.context.createAnalyser();
      meter.fftSize = 16_384; // the last third of a second: nothing falls between two looks at it
      meters.set(target, meter);
      loudspeaker.meters.push(meter);
      connect.call(meter, target);
    }
    connect.call(this, meter);
    return target;
  } as typeof AudioNode.prototype.connect;

  setInterval(() => {
    loudspeaker.isSounding = loudspeaker.meters.some((meter) => {
      const wave = new Float32Array(meter.fftSize);
      meter.getFloatTimeDomainData(wave);
      return meter.context.state === "running" && wave.some((sample) => Math.abs(sample) > 0.001);
    });
    loudspeaker.hasSounded ||= loudspeaker.isSounding;
  }, 20);
}

/** Waits for a sound, if there was none yet. */
export async function hearSomething(page: Page): Promise<void> {
  await page.waitForFunction(() => window.loudspeaker.hasSounded);
}

/** Waits for silence. */
export async function hearNothing(page: Page): Promise<void> {
  await page.waitForFunction(() => !window.loudspeaker.isSounding);
}
