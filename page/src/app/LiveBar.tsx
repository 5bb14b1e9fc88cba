/** The microphone, how loud both sides are, and whether there is a connection. */
import type { LiveChatTransport } from "adk-stream-client";
import { Mic, MicOff, OctagonPause, RadioTower } from "lucide-react";
import { type RefObject, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { type ConnectionState, useConnection } from "./useConnection.ts";
import { useLiveProblem } from "./useLiveProblem.ts";
import { type Microphone, Voice } from "./voice.ts";

interface LiveBarProps {
  live: LiveChatTransport;
  isBusy: boolean;
  onReconnect(): void;
}

export function LiveBar({ live, isBusy, onReconnect }: LiveBarProps) {
  const [voice] = useState(() => new Voice(live));
  const { microphone, problem: microphoneProblem, elsewhere } = useSyncExternalStore(voice.subscribe, voice.state);
  const connection = useConnection(live);
  const liveProblem = useLiveProblem(live);
  const problem = microphoneProblem ?? liveProblem;
  const userMeter = useRef<HTMLSpanElement>(null);
  const agentMeter = useRef<HTMLSpanElement>(null);
  const [isHeard, setHeard] = useState(false);

  useEffect(() => {
    voice.onLevels = (levels) => {
      draw(userMeter, levels.microphone);
      draw(agentMeter, levels.player);
      setHeard(levels.player > 0);
    };
    const endWaiting = onceActive(() => void voice.listen().catch(() => {}));
    return () => {
      endWaiting();
      void voice.end();
    };
  }, [voice]);

  const hold = {
    onPointerDown: () => void voice.talk(),
    onPointerUp: () => voice.release(),
    onPointerCancel: () => voice.release(),
    onPointerLeave: () => voice.release(),
    onBlur: () => voice.release(),
    onKeyDown: (event: React.KeyboardEvent) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      if (!event.repeat) void voice.talk();
    },
    onKeyUp: (event: React.KeyboardEvent) => {
      if (event.key === " " || event.key === "Enter") voice.release();
    },
  };
  return (
    <section aria-label="Live" className="border-b border-line px-3 py-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2 text-sm">
        <Connection state={connection} onReconnect={onReconnect} />
        <span className="flex items-center gap-2 text-xs text-ink-2">
          <Meter name="Microphone level" meter={userMeter} /> you
          <Meter name="Voice level of the agent" meter={agentMeter} /> agent
        </span>
        <span className="ml-auto flex flex-wrap gap-1.5">
          <button
            type="button"
            title="Hold the button or the Space key"
            aria-pressed={microphone === "talking"}
            disabled={microphone === "open" || connection === "closed" || elsewhere !== undefined}
            className={`${BUTTON} touch-none select-none`}
            {...hold}
          >
            <Mic size={15} aria-hidden /> Hold to talk
          </button>
          <button
            type="button"
            disabled={microphone === "talking" || connection === "closed" || elsewhere !== undefined}
            className={`${BUTTON} ${microphone === "open" ? "border-audio text-audio" : ""}`}
            onClick={() => void voice.toggleOpen()}
          >
            {microphone === "open" ? <MicOff size={15} aria-hidden /> : <RadioTower size={15} aria-hidden />}
            {microphone === "open" ? "Close microphone" : "Open microphone"}
          </button>
          <button type="button" disabled={!isBusy && !isHeard} className={BUTTON} onClick={() => live.interrupt()}>
            <OctagonPause size={15} aria-hidden /> Interrupt
          </button>
        </span>
      </div>
      <p role={problem ? "alert" : undefined} className={`mt-1 text-xs ${problem ? "text-error" : "text-ink-2"}`}>
        {problem ?? (elsewhere === undefined ? SAYS[microphone] : saysElsewhere(elsewhere.name))}
      </p>
    </section>
  );
}

const BUTTON =
  "flex items-center gap-1.5 rounded-lg border border-line-strong bg-card px-2.5 py-1 hover:border-ink " +
  "aria-pressed:border-audio aria-pressed:text-audio disabled:border-line disabled:text-ink-2 disabled:opacity-70";

const SAYS: Record<Microphone, string> = {
  off: "Write, or hold to talk. Speaking over the agent interrupts it.",
  asking: "The browser asks for the microphone…",
  talking: "Listening. Let go when you are done.",
  open: "Listening. The microphone stays open.",
};

function saysElsewhere(name: string | undefined): string {
  return `The microphone is open in another page of this chat${name === undefined ? "" : ` (${name})`}. Close it there to speak here.`;
}

const STATES: Record<ConnectionState, { says: string; dot: string }> = {
  connecting: { says: "Connecting…", dot: "bg-approval" },
  live: { says: "Live", dot: "bg-ok" },
  reconnecting: { says: "Reconnecting…", dot: "bg-approval" },
  closed: { says: "Closed", dot: "bg-error" },
};

function Connection({ state, onReconnect }: { state: ConnectionState; onReconnect(): void }) {
  const { says, dot } = STATES[state];
  return (
    <span className="flex items-center gap-2">
      <span className={`size-2 rounded-full ${dot}`} aria-hidden />
      <span role="status" aria-label="Connection">
        {says}
      </span>
      {state === "closed" && (
        <button type="button" className="underline" onClick={onReconnect}>
          Reconnect
        </button>
      )}
    </span>
  );
}

function Meter({ name, meter }: { name: string; meter: RefObject<HTMLSpanElement | null> }) {
  return (
    <span
      ref={meter}
      role="meter"
      aria-label={name}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={0}
      className="h-1.5 w-12 overflow-hidden rounded-full bg-line"
    >
      <span className="block h-full origin-left scale-x-0 rounded-full bg-audio" />
    </span>
  );
}

function draw(meter: RefObject<HTMLSpanElement | null>, level: number): void {
  if (meter.current === null) return;
  // Speech is seldom louder than a third of what is possible.
  const shown = Math.min(1, level * 3);
  meter.current.setAttribute("aria-valuenow", String(Math.round(shown * 100)));
  (meter.current.firstElementChild as HTMLElement).style.transform = `scaleX(${shown})`;
}

/** Browsers let a page make a sound only after the person has clicked or typed. */
function onceActive(act: () => void): () => void {
  if (navigator.userActivation?.hasBeenActive ?? true) {
    act();
    return () => {};
  }
  const ended = new AbortController();
  const options = { once: true, signal: ended.signal };
  for (const event of ["pointerdown", "keydown"])
    addEventListener(
      event,
      () => {
        ended.abort();
        act();
      },
      options,
    );
  return () => ended.abort();
}
