/** What a browser has to load before the first paint: scripts of the built page, compressed. Fails above the limit. */
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT_KB = 200;
const page = new URL("../../src/adk_stream_protocol/demo/page/", import.meta.url);

const html = readFileSync(new URL("index.html", page), "utf8");
const named = [...html.matchAll(/(?:src|href)="(\.\/[^"]+\.js)"/g)].map((match) => match[1]!);
const loaded = new Map<string, number>();

function load(address: string, from: URL): void {
  const file = new URL(address, from);
  if (loaded.has(file.href)) return;
  const code = readFileSync(file);
  loaded.set(file.href, gzipSync(code, { level: 9 }).length);
  // Static ones only: what is imported later is not needed for the first paint.
  for (const [, imported] of code.toString().matchAll(/(?:from|import)\s*"(\.[^"]+\.js)"/g)) load(imported!, file);
}

for (const address of named) load(address, page);
const kb = [...loaded.values()].reduce((sum, size) => sum + size, 0) / 1000;
console.log(`first paint: ${loaded.size} scripts, ${kb.toFixed(1)} kB gzip (limit ${LIMIT_KB})`);
if (loaded.size === 0 || kb > LIMIT_KB) process.exit(1);
