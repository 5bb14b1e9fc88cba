/** What the inbox shows: what waits, and what has become of what was shown before. */
import { type InboxEntry, type InboxPage, readableError, RequestRefused } from "./api.ts";

export interface InboxItem {
  entry: InboxEntry;
  /** `gone`: it does not wait for this person any more, and who decided is not known here. */
  state: "waiting" | "decided" | "gone";
  /** Why the last decision was not recorded. */
  problem?: string;
}

/** The server has told what waits. What is answered here stays, so that it does not vanish under somebody's hands. */
export function withPage(shown: InboxItem[], { approvals, cursor }: InboxPage): InboxItem[] {
  const before = new Map(shown.map((item) => [item.entry.id, item]));
  const waiting = approvals.map((entry): InboxItem => {
    const { state, problem } = before.get(entry.id) ?? {};
    return { entry, state: "waiting", ...(state === "waiting" && problem !== undefined && { problem }) };
  });
  const listed = new Set(approvals.map(({ id }) => id));
  const oldest = cursor === null ? "" : (approvals.at(-1)?.askedAt ?? "");
  const left = shown.flatMap((item): InboxItem[] => {
    if (listed.has(item.entry.id)) return [];
    if (item.state !== "waiting") return [item];
    return item.entry.askedAt <= oldest ? [] : [{ entry: item.entry, state: "gone" }]; // or it is on a later page
  });
  return [...waiting, ...left].sort((a, b) => b.entry.askedAt.localeCompare(a.entry.askedAt));
}

/** A decision was recorded, this one or an earlier one. */
export function withOutcome(shown: InboxItem[], recorded: InboxEntry): InboxItem[] {
  return changed(shown, recorded.id, () => ({ entry: recorded, state: "decided" }));
}

export function withProblem(shown: InboxItem[], id: string, error: Error): InboxItem[] {
  const isGone = error instanceof RequestRefused && error.status === 404;
  return changed(shown, id, ({ entry }) => {
    return { entry, state: isGone ? "gone" : "waiting", problem: problemWords(error) };
  });
}

export function withoutProblem(shown: InboxItem[], id: string): InboxItem[] {
  return changed(shown, id, ({ entry, state }) => ({ entry, state }));
}

function changed(shown: InboxItem[], id: string, change: (item: InboxItem) => InboxItem): InboxItem[] {
  return shown.map((item) => (item.entry.id === id ? change(item) : item));
}

const PROBLEMS: Record<number, string> = {
  404: "This does not wait for you any more: somebody else has decided, or it was withdrawn.",
  409: "What is asked has changed since you saw it. Look at it again, then decide.",
  422: "The tool does not take these changes. It still waits for you: change them, or decide without any.",
};

function problemWords(error: Error): string {
  const known = error instanceof RequestRefused ? PROBLEMS[error.status] : undefined;
  return known ?? readableError(error).message;
}
