/** Which of several agents the page talks to. The server opens the page of each: they share no chats. */
import { told } from "../told.ts";

export function AgentChoice() {
  const names = agentNames();
  if (names.length < 2) return null;
  return (
    <label className="mx-2 mb-2 flex items-center gap-2 px-3 text-sm text-ink-2">
      Agent
      <select
        className="min-w-0 flex-1 rounded-lg border border-line-strong bg-card px-2 py-1.5 font-mono text-[13px] text-ink hover:border-ink"
        value={agentName()}
        onChange={({ target }) => location.assign(`?${new URLSearchParams({ agent: target.value })}`)}
      >
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

/** The agent that is open, if the server has told its name. */
export function agentName(): string {
  return told("adk-agent");
}

function agentNames(): string[] {
  const names: unknown = JSON.parse(told("adk-agents") || "[]");
  return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
}
