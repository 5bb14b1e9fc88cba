import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type NewEntry, WireLog } from "./log.ts";

function entry(log: WireLog, fields: Partial<NewEntry> = {}): NewEntry {
  return {
    mode: "chat",
    direction: "received",
    chatId: "c",
    messageId: undefined,
    partKey: undefined,
    type: "text-delta",
    family: "text",
    data: {},
    raw: "{}",
    kind: "chunk",
    exchange: log.newExchange("POST", "/api/chat"),
    askedAt: 0,
    ...fields,
  };
}

describe("the log", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("keeps the newest entries and their numbers", () => {
    const log = new WireLog(3);
    for (let number = 0; number < 20; number += 1) log.add(entry(log));
    expect(log.entries().map(({ seq }) => seq)).toEqual([17, 18, 19]);
  });

  it("makes no new array unless something was added", () => {
    const log = new WireLog();
    log.add(entry(log));
    const before = log.entries();
    expect(log.entries()).toBe(before);
    log.add(entry(log));
    expect(log.entries()).not.toBe(before);
    expect(before).toHaveLength(1);
  });

  it("drops old entries when they hold too much, but never the newest", () => {
    const log = new WireLog();
    const file = "x".repeat(30_000_000);
    log.add(entry(log, { raw: file, type: "first" }));
    log.add(entry(log, { raw: file, type: "second" }));
    expect(log.entries().map(({ type }) => type)).toEqual(["second"]);
    log.add(entry(log, { raw: file + file, type: "third" }));
    expect(log.entries().map(({ type }) => type)).toEqual(["third"]);
  });

  it("tells listeners once for many entries, and not after they have left", () => {
    const log = new WireLog();
    const listener = vi.fn();
    const leave = log.subscribe(listener);
    const before = log.version;
    for (let number = 0; number < 100; number += 1) log.add(entry(log));
    expect(log.version).toBe(before + 100);
    vi.runAllTimers();
    expect(listener).toHaveBeenCalledTimes(1);
    leave();
    log.add(entry(log));
    vi.runAllTimers();
    expect(listener).toHaveBeenCalledTimes(1);
  });

  it("counts the chunks of a part beyond what it keeps", () => {
    const log = new WireLog(2);
    for (let number = 0; number < 100; number += 1) log.add(entry(log, { messageId: "m", partKey: "text:0" }));
    expect(log.part("m", "text:0")).toMatchObject({ count: 100, firstSeq: 0 });
    expect(log.part("m", "text:0")?.families.length).toBeLessThan(100);
    expect(log.part("m", "text:1")).toBeUndefined();
  });

  it("makes one entry of a second of voice in each direction, without its samples", () => {
    const log = new WireLog();
    const exchange = log.newExchange(undefined, "/api/chat/live");
    const voice = (direction: "sent" | "received", bytes: number) => {
      const { type: _type, family: _family, data: _data, raw: _raw, kind: _kind, ...rest } = entry(log);
      log.addVoice({ ...rest, exchange, direction }, bytes);
    };
    for (let number = 0; number < 10; number += 1) {
      voice("sent", 640);
      voice("received", 960);
    }
    vi.advanceTimersByTime(2_000);
    voice("sent", 2);
    expect(log.entries().map(({ direction, data }) => [direction, data])).toEqual([
      ["sent", { frames: 10, bytes: 6_400 }],
      ["received", { frames: 10, bytes: 9_600 }],
      ["sent", { frames: 1, bytes: 2 }],
    ]);
  });

  it("is empty after it was cleared, and numbers go on", () => {
    const log = new WireLog();
    log.add(entry(log, { messageId: "m", partKey: "text:0" }));
    log.addPing();
    log.clear();
    expect([log.entries(), log.pings, log.part("m", "text:0")]).toEqual([[], 0, undefined]);
    log.add(entry(log));
    expect(log.entries()[0]?.seq).toBe(1);
  });
});
