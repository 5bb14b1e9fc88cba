import { afterEach, expect, test, vi } from "vitest";
import { browserTools } from "./index.ts";

afterEach(() => vi.unstubAllGlobals());

function browserSays(geolocation: unknown, permissions?: unknown): void {
  vi.stubGlobal("navigator", { geolocation, permissions });
}

const { run, permission } = browserTools.get_location!;

test("it tells what the browser tells", async () => {
  const coords = { latitude: 35.01, longitude: 135.77, accuracy: 12, altitude: null };
  browserSays({
    getCurrentPosition: (found: (at: unknown) => void) => found({ coords, timestamp: 1_767_000_000_000 }),
  });
  expect(await run({})).toEqual({ latitude: 35.01, longitude: 135.77, accuracy: 12, timestamp: 1_767_000_000_000 });
});

test.each([
  [1, "does not let this page know"],
  [2, "could not find out"],
  [3, "took too long"],
  [9, "Something new"],
])("error %i says why", async (code, words) => {
  browserSays({
    getCurrentPosition: (_: unknown, failed: (error: unknown) => void) => failed({ code, message: "Something new" }),
  });
  await expect(run({})).rejects.toThrow(words);
});

test("a browser that cannot tell is an error, too", async () => {
  browserSays(undefined);
  await expect(run({})).rejects.toThrow("cannot tell");
});

test.each([
  ["prompt", "ask"],
  ["granted", "allowed"],
  ["denied", "denied"],
])("the browser's permission %s means %s", async (state, expected) => {
  browserSays({}, { query: async () => ({ state }) });
  expect(await permission()).toBe(expected);
});

test("a browser that does not tell will ask", async () => {
  browserSays({});
  expect(await permission()).toBe("ask");
  browserSays({}, { query: () => Promise.reject(new TypeError("geolocation")) });
  expect(await permission()).toBe("ask");
});
