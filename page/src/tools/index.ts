/** The tools that run in a browser: those that this page can run itself, and those that a person answers. */
import { type AgentTool, agentTools } from "./agent-tools.ts";
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

/**
 * One that this page runs. Models choose the names, and every object has a `constructor`: only names that the list itself
 * has count. Another agent may have a tool of the same name on the server.
 */
export function browserTool(name: string): BrowserTool | undefined {
  const isAgents = agentTools()?.some((tool) => tool.name === name) ?? true;
  return isAgents && Object.hasOwn(browserTools, name) ? browserTools[name] : undefined;
}

/** One that this page does not know: a person answers it. */
export function toolForPeople(name: string): AgentTool | undefined {
  return browserTool(name) === undefined ? agentTools()?.find((tool) => tool.name === name) : undefined;
}
