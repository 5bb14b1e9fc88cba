/** Pages of the docs as bundles: their files, with the real packages and the frameworks' own compilers. */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { compile, compileModule } from "svelte/compiler";
import { build, type Loader, type Plugin } from "../../client/node_modules/esbuild/lib/main.js";
import { compileScript, parse } from "../../client/node_modules/vue/compiler-sfc/index.mjs";

export const ROOT = join(import.meta.dirname, "..", "..");
const INSTALLED = ["tests/browser", "client", "page"].map((folder) => join(ROOT, folder, "node_modules"));

/** The files of a page of the docs: blocks whose first line is a comment with a name. */
export async function filesOf(page: string): Promise<Record<string, string>> {
  const named = /^```\w+\n((?:#|\/\/|<!--) (\S+\.\w+)(?: -->)?\n.*?)^```$/gms;
  const blocks = (await readFile(join(ROOT, page), "utf8")).matchAll(named);
  return Object.fromEntries([...blocks].map(([, code, name]) => [name!, code!]));
}

/** One script for a browser. `before`: a module that is imported first. */
export async function bundle(files: Record<string, string>, entry: string, before?: string): Promise<string> {
  const built = await build({
    stdin: { contents: `${before ? `import "${before}";` : ""} import "/${entry}";`, resolveDir: ROOT },
    bundle: true,
    format: "esm",
    target: "es2023",
    jsx: "automatic",
    minify: false,
    write: false,
    logLevel: "error",
    nodePaths: INSTALLED,
    conditions: ["svelte", "browser", "production"],
    alias: { "adk-stream-client": join(ROOT, "client", "src", "index.ts") },
    define: { "process.env.NODE_ENV": '"production"', __VUE_OPTIONS_API__: "false", __VUE_PROD_DEVTOOLS__: "false" },
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true, useDefineForClassFields: true } },
    plugins: [documented(files), svelteModules],
  });
  return built.outputFiles[0]!.text;
}

/** The files of the docs, as if they stood in a folder of their own. */
function documented(files: Record<string, string>): Plugin {
  return {
    name: "documented",
    setup({ onLoad, onResolve }) {
      onResolve({ filter: /^\// }, ({ path }) => ({ namespace: "documented", path: path.slice(1) }));
      onResolve({ filter: /^\.\//, namespace: "documented" }, ({ path, importer }) => {
        const name = join(dirname(importer), path);
        const found = [name, `${name}.ts`, `${name}.tsx`].find((file) => Object.hasOwn(files, file));
        return { namespace: "documented", path: found };
      });
      onLoad({ filter: /./, namespace: "documented" }, ({ path }) => {
        const [contents, loader] = compiled(path, files[path]!);
        return { contents, loader, resolveDir: ROOT };
      });
    },
  };
}

function compiled(name: string, code: string): [code: string, loader: Loader] {
  if (name.endsWith(".vue")) {
    const { descriptor, errors } = parse(code, { filename: name });
    if (errors.length > 0) throw errors[0]!;
    return [compileScript(descriptor, { id: name, inlineTemplate: true }).content, "ts"];
  }
  if (name.endsWith(".svelte")) {
    const { js, warnings } = compile(code, { filename: name, generate: "client" });
    if (warnings.length > 0) throw new Error(warnings[0]!.message);
    return [js.code, "js"];
  }
  return [code, name.endsWith("x") ? "tsx" : "ts"];
}

/** Packages for Svelte leave their runes to the compiler of whoever uses them. */
const svelteModules: Plugin = {
  name: "svelte modules",
  setup({ onLoad }) {
    onLoad({ filter: /\.svelte\.js$/ }, async ({ path }) => {
      const { js } = compileModule(await readFile(path, "utf8"), { filename: path, generate: "client" });
      return { contents: js.code };
    });
  },
};
