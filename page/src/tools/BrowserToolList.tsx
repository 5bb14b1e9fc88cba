/** What this page may run for an agent, and whether the browser lets it. */
import { MapPin, Music, Square } from "lucide-react";
import { useEffect, useState, useSyncExternalStore } from "react";
import { type BrowserTool, browserTools } from "./index.ts";
import { music } from "./music.ts";
import { type Permission, watchPermission } from "./permissions.ts";

const WORDS: Record<Permission, string> = { ask: "asks first", allowed: "allowed", denied: "blocked" };
const ICONS: Record<string, typeof MapPin> = { get_location: MapPin, change_bgm: Music };

export function BrowserToolList() {
  return (
    <section aria-labelledby="browser-tools" className="grid gap-2 text-sm">
      <h2 id="browser-tools" className="text-xs font-medium text-ink-2">
        Runs in this browser
      </h2>
      <ul className="grid gap-1.5">
        {Object.values(browserTools).map((tool) => (
          <ToolRow key={tool.name} tool={tool} />
        ))}
      </ul>
      <NowPlaying />
    </section>
  );
}

function ToolRow({ tool }: { tool: BrowserTool }) {
  const permission = usePermission(tool);
  const Icon = ICONS[tool.name] ?? Square;
  return (
    <li className="flex items-center gap-2" title={tool.describe}>
      <Icon size={15} aria-hidden className="shrink-0 text-tool" />
      <span className="font-mono">{tool.name}</span>
      <span className={`ml-auto ${permission === "denied" ? "text-error" : "text-ink-2"}`}>
        {permission && WORDS[permission]}
      </span>
    </li>
  );
}

function usePermission(tool: BrowserTool): Permission | undefined {
  const [permission, setPermission] = useState<Permission>();
  useEffect(() => {
    let isWanted = true;
    const look = () => void tool.permission().then((found) => isWanted && setPermission(found));
    look();
    const endWatching = watchPermission("geolocation", look);
    return () => {
      isWanted = false;
      endWatching();
    };
  }, [tool]);
  return permission;
}

function NowPlaying() {
  const now = useSyncExternalStore(music.subscribe, music.now);
  return (
    <div role="status">
      {now !== undefined && (
        <div className="flex items-center gap-2">
          <span className="min-w-0 truncate">
            {now.isWaiting ? "Click anywhere to hear " : "Playing "}
            {now.title}
          </span>
          <button
            type="button"
            aria-label="Turn the music off"
            title="Turn the music off"
            onClick={() => music.stop()}
            className="ml-auto grid size-7 shrink-0 place-items-center rounded-md border border-line-strong hover:bg-card"
          >
            <Square size={12} aria-hidden />
          </button>
        </div>
      )}
    </div>
  );
}
