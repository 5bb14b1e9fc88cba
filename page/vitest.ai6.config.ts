/** The tests of what runs code of the AI SDK, with the AI SDK 6. That is `app/` alone: elsewhere there are only its types,
 * which the compiler checks against both. */
import { fileURLToPath } from "node:url";
import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vite.config.ts";

const sdk = (path: string) => fileURLToPath(new URL(`./node_modules/ai-sdk-react-6/${path}`, import.meta.url));

export default mergeConfig(
  { ...base, test: { ...base.test, include: ["src/app/**/*.test.{ts,tsx}"] } },
  defineConfig({
    resolve: {
      alias: [
        { find: /^ai$/, replacement: sdk("node_modules/ai/dist/index.mjs") },
        { find: /^@ai-sdk\/react$/, replacement: sdk("dist/index.mjs") },
      ],
    },
  }),
);
