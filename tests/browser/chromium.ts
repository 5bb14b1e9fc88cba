/**
 * The browser: one that the machine has (`CHROMIUM`, or where distributions put it), else the one of npm's
 * `@sparticuz/chromium`, which brings the libraries it needs.
 */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { inflate } from "@sparticuz/chromium";
import { writeSpeech } from "./speech.ts";

const SYSTEM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const CACHE = join(import.meta.dirname, "node_modules", ".cache");
const SPEECH = join(CACHE, "speech-1500.wav");

const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--no-pings",
  "--font-render-hinting=none",
  "--autoplay-policy=user-gesture-required",
  "--use-fake-ui-for-media-stream",
  "--use-fake-device-for-media-stream",
  `--use-file-for-fake-audio-capture=${SPEECH}`,
];

export async function launch(...args: string[]): Promise<Browser> {
  const { executablePath, env } = await prepare();
  return chromium.launch({ executablePath, env: { ...process.env, ...env }, args: [...ARGS, ...args] });
}

/** Unpacks what has to be unpacked, once for all runs. */
export async function prepare(): Promise<{ executablePath: string; env: Record<string, string> }> {
  await mkdir(CACHE, { recursive: true });
  if (!existsSync(SPEECH)) await writeSpeech(SPEECH);
  const system = [process.env.CHROMIUM, ...SYSTEM].find((path) => path !== undefined && existsSync(path));
  if (system !== undefined) return { executablePath: system, env: {} };
  const unpacked = await unpack();
  return {
    executablePath: join(unpacked, "chromium"),
    env: { LD_LIBRARY_PATH: join(unpacked, "al2023", "lib"), FONTCONFIG_PATH: join(unpacked, "fonts") },
  };
}

async function unpack(): Promise<string> {
  const require = createRequire(import.meta.url);
  const build = dirname(require.resolve("@sparticuz/chromium"));
  const { version } = require(join(build, "..", "package.json")) as { version: string };
  const target = join(CACHE, `chromium-${version}`);
  if (existsSync(target)) return target;
  const scratch = await mkdtemp(join(CACHE, "unpacking-"));
  const temporary = process.env.TMPDIR;
  process.env.TMPDIR = scratch; // the only way to tell the package where to put it
  try {
    const archives = ["chromium.br", "fonts.tar.br", "al2023.tar.br"];
    await Promise.all(archives.map((name) => inflate(join(build, "..", "bin", name))));
    await writeFile(join(scratch, "fonts", "fonts.conf"), fontsIn(join(target, "fonts")));
    await rename(scratch, target).catch(async (error) => {
      if (!existsSync(target)) throw error; // another process was faster
      await rm(scratch, { recursive: true });
    });
  } finally {
    if (temporary === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = temporary;
  }
  return target;
}

/** The package's own one names /tmp. Chromium ends itself where it finds no font for a text field. */
function fontsIn(folder: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${folder}</dir><cachedir>${join(folder, "cache")}</cachedir></fontconfig>
`;
}
