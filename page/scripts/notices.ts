/** The licences of everything that is in the built page, as a file beside it. Fails when one has no text. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

/** Packages that come without their licence, and the one from the same authors that has it. */
const TEXT_IS_IN: Record<string, string> = { "@ai-sdk/provider-utils": "@ai-sdk/provider" };

/** Tools of which something stays in what they build. */
const TOOLS = ["tailwindcss", "vite"];

const LICENCE_FILE = /^(licen[cs]e|copying|notice|ofl)/i;
/** Vite's file goes on with the licences of what Vite itself is made of. */
const OF_OTHERS = "\n# Licenses of bundled dependencies";

interface Locked {
  version: string;
  license?: string;
  dev?: boolean;
  devOptional?: boolean;
  optional?: boolean;
}

export function thirdPartyNotices(root: string): Plugin {
  return {
    name: "third-party-notices",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "THIRD_PARTY_NOTICES.txt", source: noticesOf(root) });
    },
  };
}

/** Of every package that the page depends on at run time, whether or not all of it is used. */
export function noticesOf(root: string): string {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, Locked>;
  };
  const nameOf = (path: string) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  const isInPage = ([path, locked]: [string, Locked]) =>
    path !== "" && (TOOLS.includes(nameOf(path)) || !(locked.dev || locked.devOptional || locked.optional));
  const notices = Object.entries(lock.packages)
    .filter(isInPage)
    .map(([path, { version, license }]) => {
      const name = nameOf(path);
      const text = textIn(join(root, path)) ?? textIn(join(root, "node_modules", TEXT_IS_IN[name] ?? "none"));
      if (text === undefined) throw new Error(`${name} has no licence text: find it, and name it in scripts/notices.ts`);
      return `${name} ${version} (${license})\n\n${text}`;
    });
  const rule = `\n\n${"-".repeat(80)}\n\n`;
  return ["This page is made with the following packages. Thank you.", ...notices].join(rule) + "\n";
}

function textIn(folder: string): string | undefined {
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => LICENCE_FILE.test(name)) : [];
  const texts = files.map((name) => readFileSync(join(folder, name), "utf8").split(OF_OTHERS)[0]!.trim());
  return texts.length === 0 ? undefined : texts.join("\n\n");
}
