/** The tarball as people get it: packed from a checkout that was never built, installed into a fresh project. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";

/** Where each release of the AI SDK is installed, with the React package that belongs to it. */
const RELEASES = {
  5: { ai: "client-5/node_modules/ai", react: "client-5" },
  6: { ai: "client-6/node_modules/ai", react: "client-6" },
  7: { ai: "ai", react: "client-7" },
};
/** Compilers and npm as processes of their own: seconds, and many more on a busy machine. */
const SLOW = { timeout: 120_000 };
const SHIPPED = ["LICENSE", "README.md", "dist/audio.js", "dist/index.d.ts", "dist/index.js", "package.json"];

const modules = resolve("node_modules");
const folder = mkdtempSync(join(tmpdir(), "adk-stream-client-"));
after(() => rmSync(folder, { recursive: true }));
const tarball = pack();

function run(command: string, options: string[], cwd: string): string {
  try {
    return execFileSync(command, options, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${options.join(" ")}\n${stdout}\n${stderr}`);
  }
}

function tool(path: string, options: string[], cwd = folder): string {
  return run(process.execPath, [join(modules, path), ...options], cwd);
}

function pack(): string {
  const checkout = join(folder, "checkout");
  mkdirSync(checkout);
  for (const file of readdirSync(".")) {
    if (file !== "node_modules" && file !== "dist") cpSync(file, join(checkout, file), { recursive: true });
  }
  symlinkSync(modules, join(checkout, "node_modules"));
  run("npm", ["pack", "--pack-destination", folder], checkout);
  const name = readdirSync(folder).find((file) => file.endsWith(".tgz"));
  assert.ok(name);
  return join(folder, name);
}

function freshProject(release: keyof typeof RELEASES): string {
  const project = join(folder, `project-${release}`);
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  // Without a network: the package has no dependencies, and its peer is put beside it.
  run("npm", ["install", tarball, "--offline", "--legacy-peer-deps", "--no-audit", "--no-fund"], project);
  const links = { ...RELEASES[release], types: "@types" };
  mkdirSync(join(project, "node_modules/@ai-sdk"));
  symlinkSync(join(modules, links.ai), join(project, "node_modules/ai"));
  symlinkSync(join(modules, links.react), join(project, "node_modules/@ai-sdk/react"));
  symlinkSync(join(modules, links.types), join(project, "node_modules/@types"));
  symlinkSync(join(modules, "ws"), join(project, "node_modules/ws"));
  for (const file of ["usage.ts", "usage-messages.ts"]) cpSync(`tests/types/${file}`, join(project, file));
  return project;
}

test("the tarball of an unbuilt checkout has everything, and no sources", () => {
  const files = run("tar", ["tzf", tarball], folder).trim().split("\n");
  const shipped = files.map((file) => file.replace("package/", ""));
  assert.deepEqual(
    SHIPPED.filter((file) => !shipped.includes(file)),
    [],
  );
  assert.deepEqual(
    shipped.filter((file) => !file.startsWith("dist/") && !SHIPPED.includes(file)),
    [],
  );
});

test("publint and are-the-types-wrong find nothing in it", SLOW, () => {
  tool("publint/src/cli.js", [tarball, "--strict"]);
  const worklets = ["microphone.worklet.js", "player.worklet.js"]; // not imported, but loaded by their address
  tool("@arethetypeswrong/cli/dist/index.js", [
    ...[tarball, "--profile", "esm-only", "--no-color"],
    ...["--exclude-entrypoints", ...worklets],
  ]);
});

for (const release of [5, 6, 7] as const) {
  test(`installed in a fresh project, it is imported and compiles with ai ${release}`, SLOW, () => {
    const project = freshProject(release);
    const { version } = JSON.parse(readFileSync(join(project, "node_modules/ai/package.json"), "utf8"));
    assert.ok(version.startsWith(`${release}.`), version);
    const used = `
      import { LiveChatTransport } from "adk-stream-client";
      import { Resampler } from "adk-stream-client/audio";
      import { Chat } from "@ai-sdk/react";
      const chat = new Chat({ transport: new LiveChatTransport({ url: "ws://localhost/live", webSocket: class {} }) });
      console.log(chat.status, typeof Resampler);`;
    assert.equal(run(process.execPath, ["--input-type=module", "-e", used], project), "ready function\n");
    const options = ["--noEmit", "--strict", "--skipLibCheck", "--types", "node", "--target", "es2023"];
    const resolution = ["--module", release === 7 ? "nodenext" : "esnext"];
    if (release !== 7) resolution.push("--moduleResolution", "bundler");
    const lib = ["--lib", "es2023,dom,dom.iterable"];
    const files = ["usage.ts", "usage-messages.ts"];
    tool("typescript/bin/tsc", [...options, ...resolution, ...lib, ...files], project);
  });
}
