/**
 * The five clients that everything is judged by, each loaded when it is first asked for.
 *
 * Only `@ai-sdk/react` is installed under an alias. Its `ai` is looked up from inside that package, so the chat
 * class, the transport, the helpers and the schema of a release always come from one copy of `ai`.
 */
import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

export const RELEASE_NAMES = ["5", "6.0.0", "6", "7.0.0", "7"] as const;
export type ReleaseName = (typeof RELEASE_NAMES)[number];

type Newest = typeof import("ai");
type NotInAll = "lastAssistantMessageIsCompleteWithApprovalResponses" | "WebSocketChatTransport";

/** What the releases export under the same name; the types are those of the newest one. */
export type Sdk = Omit<Newest, NotInAll> & Partial<Pick<Newest, NotInAll>>;

type NewestChat = import("client-7").Chat<import("ai").UIMessage>;
/** AI SDK 5 knows no approvals. */
export type Chat = Omit<NewestChat, "addToolApprovalResponse"> &
  Partial<Pick<NewestChat, "addToolApprovalResponse">>;
export type ChatInit = import("ai").ChatInit<import("ai").UIMessage>;

export interface Release {
  name: ReleaseName;
  versions: { ai: string; react: string };
  sdk: Sdk;
  Chat: new (init: ChatInit) => Chat;
}

interface Manifest {
  version: string;
  exports: { ".": { import: string } };
}

const loaded = new Map<ReleaseName, Promise<Release>>();

export function loadRelease(name: ReleaseName): Promise<Release> {
  if (!RELEASE_NAMES.includes(name)) {
    throw new Error(`there is no release ${JSON.stringify(name)}: use one of ${RELEASE_NAMES.join(", ")}`);
  }
  const release = loaded.get(name) ?? importRelease(name);
  loaded.set(name, release);
  return release;
}

async function importRelease(name: ReleaseName): Promise<Release> {
  const alias = `client-${name}`;
  const reactEntry = import.meta.resolve(alias);
  const react = readManifest(findManifest(alias, import.meta.url));
  const sdkManifest = findManifest("ai", reactEntry);
  const sdk = readManifest(sdkManifest);
  const sdkEntry = pathToFileURL(join(dirname(sdkManifest), sdk.exports["."].import)).href;
  const { Chat } = (await import(reactEntry)) as Pick<Release, "Chat">;
  return {
    name,
    versions: { ai: sdk.version, react: react.version },
    sdk: (await import(sdkEntry)) as Sdk,
    Chat,
  };
}

function findManifest(specifier: string, base: string): string {
  const path = findPackageJSON(specifier, base);
  if (path === undefined) {
    throw new Error(`${specifier} is not installed: run npm ci in tests/conformance`);
  }
  return path;
}

function readManifest(path: string): Manifest {
  return JSON.parse(readFileSync(path, "utf8")) as Manifest;
}
