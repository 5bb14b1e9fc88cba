/** What a chat shows before its first message. */
import { Logo } from "./Logo.tsx";

/** What the agent of `adk-stream demo` is made to show. */
const EXAMPLES = [
  { says: "What is the weather in Tokyo?", shows: "a tool on the server" },
  { says: "Send 50 dollars to Hanako", shows: "an approval" },
  { says: "Where am I?", shows: "a tool of this browser" },
  { says: "Change BGM to track 1", shows: "music, played here" },
];

export function Welcome({ agent, onExample }: { agent: string; onExample(text: string): void }) {
  return (
    <div className="grid min-h-0 flex-1 content-center overflow-y-auto px-4 py-6">
      <div className="mx-auto w-full max-w-[42rem]">
        <p className="flex items-center gap-3 text-xl font-semibold">
          <Logo /> {agent ? `Talk to ${agent}` : "Talk to your agent"}
        </p>
        <p className="mt-2 max-w-prose text-ink-2">
          Every message travels as chunks. The ticks beside a part stand for the chunks that built it. Press them to see
          the chunks.
        </p>
        {agent === "demo_agent" && (
          <ul aria-label="Examples" className="mt-6 grid gap-2 sm:grid-cols-2">
            {EXAMPLES.map(({ says, shows }) => (
              <li key={says}>
                <button
                  type="button"
                  onClick={() => onExample(says)}
                  className="w-full rounded-xl border border-line bg-card px-4 py-3 text-left hover:border-ink"
                >
                  <span className="block">{says}</span>
                  <span className="block text-sm text-ink-2">{shows}</span>
                </button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}
