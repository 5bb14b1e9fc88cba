import type { LiveListener } from "adk-stream-client";
import { expect, it, vi } from "vitest";
import { Voice } from "./voice.ts";

class Device {
  isMuted = false;
  readonly done: string[];
  answer: Promise<void> = Promise.resolve();
  constructor(done: string[]) {
    this.done = done;
  }
  async start(given?: MediaStream) {
    this.done.push(given === undefined ? "microphone" : "player");
    if (given === undefined) await this.answer;
  }
  async stop() {
    this.done.push("stop");
  }
}

function voice() {
  const done: string[] = [];
  const device = new Device(done);
  let tell: LiveListener = () => {};
  const live = {
    sendAudio: (pcm: ArrayBuffer) => void done.push(`silence of ${pcm.byteLength}`),
    interrupt: () => void done.push("interrupt"),
    listen: (listener: LiveListener) => {
      tell = listener;
      return () => {};
    },
  };
  globalThis.AudioContext = class {
    createMediaStreamDestination() {
      return { stream: {} };
    }
  } as never;
  const tellVoice = (owner: "you" | "other" | null, name?: string) => tell({ type: "voice", id: "c1", owner, name });
  const tellLost = () => tell({ type: "connection", state: "lost" });
  return { done, device, tellVoice, tellLost, voice: new Voice(live, () => device) };
}

it("only listens until somebody talks, and nobody is asked for a microphone", async () => {
  const { done, device, voice: spoken } = voice();
  await spoken.listen();
  expect(done).toEqual(["stop", "player"]);
  expect(device.isMuted).toBe(true);
  expect(spoken.state().microphone).toBe("off");
});

it("hears while the button is held, and ends what was said with a pause", async () => {
  const { done, device, voice: spoken } = voice();
  await spoken.talk();
  expect(spoken.state().microphone).toBe("talking");
  expect(device.isMuted).toBe(false);
  spoken.release();
  expect(device.isMuted).toBe(true);
  expect(spoken.state().microphone).toBe("off");
  expect(done).toEqual(["stop", "microphone", "interrupt", "silence of 32000"]);
});

it("hears nothing when the button was let go before the browser gave the microphone", async () => {
  const { done, device, voice: spoken } = voice();
  let give = () => {};
  device.answer = new Promise((resolve) => {
    give = resolve;
  });
  const talking = spoken.talk();
  expect(spoken.state().microphone).toBe("asking");
  await vi.waitFor(() => expect(done).toContain("microphone"));
  spoken.release();
  give();
  await talking;
  expect(device.isMuted).toBe(true);
  expect(done).not.toContain("interrupt");
  expect(spoken.state().microphone).toBe("off");
});

it("gives the microphone back when it is closed, and goes on playing", async () => {
  const { done, device, voice: spoken } = voice();
  await spoken.toggleOpen();
  expect(spoken.state().microphone).toBe("open");
  spoken.release(); // of a button that was not held
  expect(device.isMuted).toBe(false);
  await spoken.toggleOpen();
  expect(done).toEqual(["stop", "microphone", "interrupt", "silence of 32000", "stop", "player"]);
  expect(spoken.state().microphone).toBe("off");
});

it("says why there is no microphone, and plays all the same", async () => {
  const { done, device, voice: spoken } = voice();
  device.answer = Promise.reject(new DOMException("", "NotAllowedError"));
  await spoken.toggleOpen();
  expect(spoken.state()).toMatchObject({
    microphone: "off",
    problem: "The browser does not let this page use the microphone.",
  });
  expect(done).toEqual(["stop", "microphone", "stop", "player"]);
});

it("ends in the right order, however fast it is asked to", async () => {
  const { done, voice: spoken } = voice();
  void spoken.listen();
  void spoken.talk();
  await spoken.end();
  expect(done.at(-1)).toBe("stop");
  expect(spoken.state().microphone).toBe("off");
});

it("does not open the microphone while another page of the chat speaks", async () => {
  const { done, device, tellVoice, voice: spoken } = voice();
  spoken.subscribe(() => {});
  tellVoice("other", "Android");
  expect(spoken.state().elsewhere).toEqual({ name: "Android" });
  await spoken.talk();
  await spoken.toggleOpen();
  expect(done).toEqual([]);
  expect(device.isMuted).toBe(true);
  tellVoice(null);
  await spoken.talk();
  tellVoice("you");
  expect(spoken.state()).toMatchObject({ microphone: "talking", elsewhere: undefined });
});

it("closes its microphone when another page has come first", async () => {
  const { device, tellVoice, tellLost, voice: spoken } = voice();
  spoken.subscribe(() => {});
  await spoken.toggleOpen();
  tellVoice("other");
  expect(device.isMuted).toBe(true);
  expect(spoken.state()).toMatchObject({ microphone: "off", elsewhere: { name: undefined } });
  tellLost();
  expect(spoken.state().elsewhere).toBeUndefined();
});
