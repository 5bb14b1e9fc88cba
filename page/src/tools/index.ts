/** The tools that this page may run for an agent. */
import { findLocation } from "./location.ts";
import { music } from "./music.ts";
import { type Permission, permissionFor } from "./permissions.ts";

export { BrowserToolList } from "./BrowserToolList.tsx";

export interface BrowserTool {
  name: string;
  describe: string;
  run(input: unknown): Promise<unknown>;
  permission(): Promise<Permission>;
}

export const browserTools: Record<string, BrowserTool> = {
  get_location: {
    name: "get_location",
    describe: "Asks the browser where you are",
    run: findLocation,
    permission: () => permissionFor("geolocation"),
  },
  change_bgm: {
    name: "change_bgm",
    describe: "Plays one of two pieces of music",
    run: (input) => music.change(input),
    permission: async () => "allowed",
  },
};

/** Models choose the names, and every object has a `constructor`: only names that the list itself has count. */
export function browserTool(name: string): BrowserTool | undefined {
  return Object.hasOwn(browserTools, name) ? browserTools[name] : undefined;
}
