import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { thirdPartyNotices } from "./scripts/notices.ts";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** The client looks for its worklets as built files beside it. From its source they are built here, each to a file. */
function workletsFromSource(): Plugin {
  return {
    name: "worklets-from-source",
    enforce: "pre",
    transform(code, id) {
      if (!id.endsWith("/client/src/audio/voice-session.ts")) return undefined;
      const names = ["microphone", "player"];
      const imports = names.map((name) => `import ${name}Url from "./${name}.worklet.ts?worker&url";\n`);
      return imports.join("") + code.replaceAll(/new URL\("\.\/(\w+)\.worklet\.js", import\.meta\.url\)/g, "$1Url");
    },
  };
}

export default defineConfig({
  // Every address in the page is relative, so that it works under any path prefix.
  base: "./",
  plugins: [react(), tailwindcss(), workletsFromSource(), thirdPartyNotices(path("."))],
  resolve: {
    alias: [
      { find: /^adk-stream-client$/, replacement: path("../client/src/index.ts") },
      { find: /^adk-stream-client\/audio$/, replacement: path("../client/src/audio/index.ts") },
    ],
  },
  build: {
    outDir: path("../src/adk_stream_protocol/demo/page"),
    emptyOutDir: true,
    // Neither worklets nor fonts may become `data:` addresses: the page's Content-Security-Policy has no such source.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_000, // kB before compression; what counts is in scripts/check-size.ts
  },
  worker: { format: "es" },
  server: {
    fs: { allow: [path("..")] },
    proxy: { "/api": { target: "http://127.0.0.1:8000", ws: true } },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
  },
});
