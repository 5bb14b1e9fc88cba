import { setTimeout as pause } from "node:timers/promises";

const PATIENCE_MS = 5_000;

/** Waits for a condition, and says which one did not come. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`);
    await pause(1);
  }
}
