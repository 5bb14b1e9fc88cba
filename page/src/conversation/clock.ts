/** One timer for everything that counts down. */
import { useSyncExternalStore } from "react";

const TICK_MS = 1_000;
const listeners = new Set<() => void>();
let now = wholeSecond();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function tick(): void {
  now = wholeSecond();
  for (const listener of [...listeners]) listener();
}

function read(): number {
  if (timer === undefined) now = wholeSecond(); // nobody has listened for a while
  return now;
}

/** React may read the time twice in one rendering, and must get the same. */
function wholeSecond(): number {
  return Math.floor(Date.now() / 1_000) * 1_000;
}

/** Whole seconds until the deadline; undefined without one. At zero it has passed, for the server as well. */
export function useSecondsLeft(deadline: string | undefined): number | undefined {
  useSyncExternalStore(deadline === undefined ? never : subscribe, deadline === undefined ? noTime : read);
  const end = deadline === undefined ? Number.NaN : Date.parse(deadline);
  // From now, not from the last tick: the question may have come after that.
  return Number.isNaN(end) ? undefined : Math.ceil((end - Date.now()) / 1_000);
}

const never = () => () => {};
const noTime = () => 0;

/** 3725 -> "1:02:05", 65 -> "1:05". */
export function clockTime(seconds: number): string {
  const [hours, minutes, rest] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const padded = (part: number) => String(part).padStart(2, "0");
  return hours > 0 ? `${hours}:${padded(minutes)}:${padded(rest)}` : `${minutes}:${padded(rest)}`;
}
