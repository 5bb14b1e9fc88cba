/** What is shipped: its size, its entry points, and nothing that a strict page or a mirror would refuse. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const MAIN_GZIP_LIMIT = 12 * 1024;
/** Bundlers put smaller files into the page as `data:` addresses, which a strict CSP forbids for worklets. */
const INLINE_LIMIT = 4 * 1024;

const manifest = JSON.parse(readFileSync("package.json", "utf8"));

function built(name: string): string {
  return readFileSync(`dist/${name}`, "utf8");
}

test("the main entry is smaller than 12 KiB, compressed as it is shipped", (t) => {
  const size = gzipSync(built("index.js"), { level: 9 }).length;
  t.diagnostic(`dist/index.js: ${size} bytes gzip`);
  assert.ok(size < MAIN_GZIP_LIMIT, `${size} bytes`);
});

test("everything that is exported is there, and the main entry holds no audio", async () => {
  for (const target of Object.values<string | Record<string, string>>(manifest.exports)) {
    for (const file of typeof target === "string" ? [target] : Object.values(target)) assert.ok(existsSync(file), file);
  }
  const main = await import("adk-stream-client");
  assert.deepEqual(Object.keys(main), [
    "ChatRefusedError",
    "LiveChatTransport",
    "answersAreComplete",
    "bindChat",
    "claimCall",
    "runPendingCalls",
  ]);
  const audio = await import("adk-stream-client/audio");
  assert.deepEqual(Object.keys(audio), ["JitterBuffer", "Resampler", "VoiceSession", "decodePcm16", "encodePcm16"]);
  assert.doesNotMatch(built("index.js"), /AudioContext|Resampler/);
});

test("nothing is imported at run time", () => {
  for (const file of ["index.js", "audio.js", "microphone.worklet.js", "player.worklet.js"]) {
    assert.doesNotMatch(built(file), /^\s*import[\s{"'*]/m, file);
    assert.doesNotMatch(built(file), /\beval\(|new Function|blob:|createObjectURL/, file);
  }
  assert.equal(manifest.dependencies, undefined);
});

test("worklets are files of their own, found beside the module, and too big to be put into it", () => {
  for (const name of ["microphone.worklet.js", "player.worklet.js"]) {
    assert.ok(built("audio.js").includes(`new URL("./${name}", import.meta.url)`), name);
    assert.ok(built(name).length > INLINE_LIMIT, `${name} has ${built(name).length} bytes`);
  }
});

test("the lock file names no registry, and what is installed is pinned", () => {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
    packages: Record<string, { resolved?: string }>;
  };
  assert.deepEqual(
    Object.values(packages).filter(({ resolved }) => resolved !== undefined),
    [],
  );
  for (const version of Object.values<string>(manifest.devDependencies))
    assert.match(version, /^(npm:@ai-sdk\/react@)?\d+\.\d+\.\d+$/);
});
