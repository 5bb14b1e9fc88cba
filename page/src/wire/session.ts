/** What a conversation tells about its session: the state that is sent to pages, and the artifacts that were saved. */
import type { UIMessage } from "ai";
import { isRecord } from "../is-record.ts";

export interface StateEntry {
  key: string;
  value: unknown;
  /** The number of the message that has changed it last, from 1. */
  message: number;
}

/** By the order in which the keys first came. */
export function sessionState(messages: UIMessage[]): StateEntry[] {
  const entries = new Map<string, StateEntry>();
  messages.forEach(({ parts }, index) => {
    for (const part of parts) {
      if (part.type !== "data-adk-state" || !("data" in part) || !isRecord(part.data)) continue;
      for (const [key, value] of Object.entries(part.data)) entries.set(key, { key, value, message: index + 1 });
    }
  });
  return [...entries.values()];
}

export interface ArtifactVersion {
  version: number;
  /** Where it can be had, if the server says so. */
  url: string | undefined;
  mediaType: string | undefined;
  message: number;
}

export interface Artifact {
  filename: string;
  /** The newest first. */
  versions: ArtifactVersion[];
}

export function artifacts(messages: UIMessage[]): Artifact[] {
  const found = new Map<string, Artifact>();
  messages.forEach(({ parts }, index) => {
    parts.forEach((part, place) => {
      if (part.type !== "data-adk-artifact" || !("data" in part) || !isRecord(part.data)) return;
      const { filename, version } = part.data;
      if (typeof filename !== "string" || typeof version !== "number") return;
      const next = parts[place + 1];
      const file = next?.type === "file" ? next : undefined;
      const artifact = found.get(filename) ?? { filename, versions: [] };
      const others = artifact.versions.filter((other) => other.version !== version);
      const added = { version, url: file?.url, mediaType: file?.mediaType, message: index + 1 };
      const versions = [added, ...others].sort((one, other) => other.version - one.version);
      found.set(filename, { filename, versions });
    });
  });
  return [...found.values()];
}
