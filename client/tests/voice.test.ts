/** From the microphone to the server and back to the loudspeaker, with the files that are shipped. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { VoiceSession } from "adk-stream-client/audio";
import { decodePcm16, loudness } from "../src/audio/pcm.ts";
import { TestServer } from "./support/server.ts";
import { makeTransport, roundTrip } from "./support/transports.ts";
import { until } from "./support/until.ts";
import { WebAudio } from "./support/web-audio.ts";

function tone(frequency: number, rate: number, seconds: number, height = 0.5): Float32Array {
  return Float32Array.from(
    { length: rate * seconds },
    (_, n) => height * Math.sin((2 * Math.PI * frequency * n) / rate),
  );
}

/** How often the sign changes, which for a tone is twice its frequency. */
function frequencyOf(samples: Float32Array, rate: number): number {
  let changes = 0;
  for (let place = 1; place < samples.length; place++)
    changes += samples[place - 1]! < 0 !== samples[place]! < 0 ? 1 : 0;
  return (changes / 2 / samples.length) * rate;
}

for (const deviceRate of [48_000, 44_100]) {
  test(`a device of ${deviceRate} Hz: the voice comes as packets of 20 ms at 16 kHz`, async (t) => {
    const audio = new WebAudio(t, deviceRate);
    const server = await TestServer.start(t);
    const transport = makeTransport(t, server.url);
    transport.attach("c1");
    const peer = await server.peer(0);
    await peer.next("attach");
    const levels: number[] = [];
    const session = new VoiceSession(transport, { onLevel: ({ microphone }) => void levels.push(microphone) });
    await session.start();
    assert.deepEqual(
      audio.modules.map((url) => url.split("/").slice(-2).join("/")),
      ["dist/player.worklet.js", "dist/microphone.worklet.js"],
    );
    audio.speak(tone(440, deviceRate, 1));
    await until(() => peer.voice.length >= 49, "the voice has come");
    assert.deepEqual(new Set(peer.voice.map(({ length }) => length)), new Set([640]));
    const heard = decodePcm16(Uint8Array.from(Buffer.concat(peer.voice)).buffer);
    assert.ok(Math.abs(frequencyOf(heard, 16_000) - 440) < 5);
    assert.ok(Math.abs(levels.at(-1)! - 0.5 * Math.SQRT1_2) < 0.02);
    await session.stop();
  });
}

test("without the subprotocol the voice comes as text, in both directions", async (t) => {
  const audio = new WebAudio(t, 48_000);
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url, { protocols: [] });
  transport.attach("c1");
  const peer = await server.peer(0);
  await peer.next("attach");
  const session = new VoiceSession(transport);
  await session.start();
  audio.speak(tone(440, 48_000, 0.1));
  const frame = await peer.next("audio");
  assert.equal(frame.requestId, "-");
  assert.equal(Buffer.from(frame.data, "base64").length, 640);
  assert.deepEqual(peer.voice, []);
  const samples = tone(300, 16_000, 0.5).map((sample) => sample * 0x7fff);
  peer.own("audio", { id: "c1", rate: 16_000, data: Buffer.from(Int16Array.from(samples).buffer).toString("base64") });
  await roundTrip(transport, peer);
  assert.ok(Math.abs(frequencyOf(audio.listen(0.4).subarray(4800), 48_000) - 300) < 10);
  await session.stop();
});

test("the model's voice is played at the rate that the server names, 24 kHz before it names one", async (t) => {
  const audio = new WebAudio(t, 48_000);
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  transport.attach("c1");
  const peer = await server.peer(0);
  await peer.next("attach");
  const levels: number[] = [];
  const session = new VoiceSession(transport, { onLevel: ({ player }) => void levels.push(player) });
  await session.start();
  assert.equal(loudness(audio.listen(0.1)), 0);
  for (const rate of [24_000, 16_000]) {
    if (rate !== 24_000) peer.own("audio", { id: "c1", rate });
    const samples = tone(500, rate, 1, 0x4000);
    for (let start = 0; start < samples.length; start += 1000)
      peer.sayVoice([...samples.subarray(start, start + 1000)]);
    await roundTrip(transport, peer);
    const played = audio.listen(0.9).subarray(4800);
    assert.ok(Math.abs(frequencyOf(played, 48_000) - 500) < 5, `at ${rate}`);
    assert.ok(Math.abs(loudness(played) - 0.5 * Math.SQRT1_2) < 0.02);
    assert.ok(levels.at(-1)! > 0.3);
    assert.ok(loudness(audio.listen(0.5)) < 0.2);
    assert.equal(loudness(audio.listen(0.1)), 0);
    assert.equal(levels.at(-1), 0);
  }
  await session.stop();
});

test("an interruption empties what has not been played", async (t) => {
  const audio = new WebAudio(t, 48_000);
  const server = await TestServer.start(t);
  const transport = makeTransport(t, server.url);
  transport.attach("c1");
  const peer = await server.peer(0);
  await peer.next("attach");
  const session = new VoiceSession(transport);
  await session.start();
  peer.sayVoice([...tone(500, 24_000, 5, 0x4000)]);
  await roundTrip(transport, peer);
  assert.ok(loudness(audio.listen(0.5)) > 0.3);
  peer.own("audio-clear", { id: "c1" });
  await roundTrip(transport, peer);
  // The filter still holds a millisecond of it.
  audio.listen(0.01);
  assert.equal(loudness(audio.listen(1)), 0);
  await session.stop();
});

test("an open microphone claims the voice, and a muted or stopped one gives it up", async (t) => {
  new WebAudio(t, 48_000);
  const told: unknown[] = [];
  const transport = {
    sendAudio: () => {},
    listen: () => () => {},
    startVoice: (options?: { name?: string }) => void told.push(options?.name),
    endVoice: () => void told.push("end"),
  };
  const session = new VoiceSession(transport, { name: "Phone" });
  session.isMuted = true;
  await session.start();
  assert.deepEqual(told, []);
  session.isMuted = false;
  session.isMuted = false;
  session.isMuted = true;
  session.isMuted = false;
  await session.stop();
  await session.stop();
  assert.deepEqual(told, ["Phone", "end", "Phone", "end"]);
});

test("muted, nothing is sent; stopped, everything is given back", async (t) => {
  const audio = new WebAudio(t, 48_000);
  const sent: ArrayBuffer[] = [];
  let listeners = 0;
  const transport = {
    sendAudio: (pcm: ArrayBuffer) => void sent.push(pcm),
    listen: () => {
      listeners += 1;
      return () => void (listeners -= 1);
    },
  };
  const session = new VoiceSession(transport);
  await session.start();
  await session.start();
  assert.equal(listeners, 1);
  session.isMuted = true;
  audio.speak(tone(440, 48_000, 0.2));
  assert.equal(sent.length, 0);
  session.isMuted = false;
  audio.speak(tone(440, 48_000, 0.2));
  assert.equal(sent.length > 0, true);
  await session.stop();
  assert.deepEqual([listeners, audio.tracks[0]!.isStopped, audio.isClosed, session.isRunning], [0, true, true, false]);
});

test("a microphone that comes after the stop is given back, and one that is handed over is left alone", async (t) => {
  const audio = new WebAudio(t, 48_000);
  const transport = { sendAudio: () => {}, listen: () => () => {} };
  const session = new VoiceSession(transport);
  let agree: (() => void) | undefined;
  audio.permission = () => new Promise((resolve) => (agree = resolve));
  const starting = session.start();
  await until(() => agree !== undefined, "the user is asked");
  await session.stop();
  agree!();
  await starting;
  assert.deepEqual([audio.tracks[0]!.isStopped, session.isRunning], [true, false]);

  let isStopped = false;
  const own = { getTracks: () => [{ stop: () => void (isStopped = true) }] } as unknown as MediaStream;
  await session.start(own);
  await session.stop();
  assert.equal(isStopped, false);
});

test("a user who refuses the microphone leaves nothing behind", async (t) => {
  const audio = new WebAudio(t, 48_000);
  audio.permission = async () => {
    throw new DOMException("no", "NotAllowedError");
  };
  const session = new VoiceSession({ sendAudio: () => {}, listen: () => () => {} });
  await assert.rejects(session.start(), { name: "NotAllowedError" });
  assert.deepEqual([audio.isClosed, session.isRunning], [true, false]);
});
