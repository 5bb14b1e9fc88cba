/** Where nobody logs in: the demo's page may be opened as one of the people that its policy names. */
import { isRecord } from "../is-record.ts";
import { told } from "../told.ts";

export function PersonChoice() {
  const people = Object.entries(demoPeople());
  if (people.length === 0) return null;
  return (
    <label className="mx-2 mb-2 flex items-center gap-2 px-3 text-sm text-ink-2">
      You are
      <select
        className="min-w-0 flex-1 rounded-lg border border-line-strong bg-card px-2 py-1 text-ink hover:border-ink"
        value={demoUser() ?? ""}
        onChange={({ target }) => location.assign(addressOf(target.value))}
      >
        <option value="">yourself</option>
        {people.map(([name, what]) => (
          <option key={name} value={name}>
            {name}, {String(what)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Undefined where the page is its visitor's own. */
export function demoUser(): string | undefined {
  const named = new URLSearchParams(location.search).get("user") ?? "";
  return Object.hasOwn(demoPeople(), named) ? named : undefined;
}

/** Chats belong to people: nobody else can open the one that is open now. */
function addressOf(user: string): string {
  return user === "" ? location.pathname : `?${new URLSearchParams({ user })}#approvals`;
}

/** What they are, by their ids. */
function demoPeople(): Record<string, unknown> {
  const people: unknown = JSON.parse(told("adk-people") || "{}");
  return isRecord(people) ? people : {};
}
