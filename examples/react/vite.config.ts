import { fileURLToPath } from "node:url";
import type { UserConfig } from "vite";

export default {
  // Only inside this repository; elsewhere it is the npm package.
  resolve: { alias: { "adk-stream-client": fileURLToPath(new URL("../../client/src/index.ts", import.meta.url)) } },
  server: {
    fs: { allow: ["../.."] },
    proxy: { "/api": { target: "http://127.0.0.1:8000", ws: true } },
  },
} satisfies UserConfig;
