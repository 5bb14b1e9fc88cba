/** Builds `dist`: types, the two entry points, and the worklets as files of their own, as a strict CSP wants them. */
import { execFileSync } from "node:child_process";
import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

rmSync("dist", { recursive: true, force: true });

execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], { stdio: "inherit" });
// The compiler leaves these endings in declarations, where not every compiler of a user's takes them.
for (const file of globSync("dist/**/*.d.ts")) {
  writeFileSync(file, readFileSync(file, "utf8").replaceAll(/(from "\.[^"]*)\.ts"/g, '$1.js"'));
}

const common = { bundle: true, format: "esm", target: "es2022", outdir: "dist", logLevel: "warning" } as const;
await build({ ...common, entryPoints: { index: "src/index.ts", audio: "src/audio/index.ts" } });
await build({
  ...common,
  // Unminified and with this on top they are above 4 KiB, below which bundlers would make `data:` addresses of them.
  banner: {
    js: "// Part of adk-stream-client (Apache-2.0). Runs in the audio thread of a page; loaded with addModule().\n",
  },
  entryPoints: {
    "microphone.worklet": "src/audio/microphone.worklet.ts",
    "player.worklet": "src/audio/player.worklet.ts",
  },
});
