/** The browser tools of the agent: whether the browser lets them run, or a person answers them. */
import { MapPin, Music, Square, SquarePen } from "lucide-react";
import { useEffect, useState, useSyncExternalStore } from "react";
import { agentTools } from "./agent-tools.ts";
import { type BrowserTool, browserTool } from "./index.ts";
import { music } from "./music.ts";
import { type Permission, watchPermission } from "./permissions.ts";

const WORDS: Record<Permission, string> = { ask: "asks first", allowed: "allowed", denied: "blocked" };
/** More tools than this scroll, so that the chats keep their room. */
const MAX_SHOWN = 6;
const ICONS: Record<string, typeof MapPin> = { get_location: MapPin, change_bgm: Music };

export function BrowserToolList() {
  const tools = agentTools() ?? [];
  if (tools.length === 0)
    return (
      <div className="px-3 pb-2 text-sm">
        <NowPlaying />
      </div>
    );
  const isLong = tools.length > MAX_SHOWN;
  return (
    <section aria-labelledby="browser-tools" className="grid gap-2 border-t border-line p-3 text-sm">
      <h2 id="browser-tools" className="text-xs font-medium text-ink-2">
        Runs in this browser
      </h2>
      <ul className={`grid gap-1.5 ${isLong ? "max-h-40 overflow-y-auto" : ""}`} tabIndex={isLong ? 0 : undefined}>
        {tools.map(({ name, description }) => {
          const own = browserTool(name);
          return own ? <OwnTool key={name} tool={own} /> : <ToolRow key={name} name={name} about={description} />;
        })}
      </ul>
      <NowPlaying />
    </section>
  );
}

function OwnTool({ tool }: { tool: BrowserTool }) {
  const permission = usePermission(tool);
  const icon = ICONS[tool.name] ?? Square;
  return <ToolRow name={tool.name} about={tool.describe} icon={icon} permission={permission} />;
}

/** Without an icon of its own: a person answers it. */
function ToolRow(props: { name: string; about: string; icon?: typeof MapPin; permission?: Permission | undefined }) {
  const { name, about, icon, permission } = props;
  const Icon = icon ?? SquarePen;
  const words = icon === undefined ? "asks you" : permission && WORDS[permission];
  return (
    <li className="flex items-center gap-2" title={about}>
      <Icon size={15} aria-hidden className="shrink-0 text-tool" />
      <span className="min-w-0 truncate font-mono">{name}</span>
      <span className={`ml-auto shrink-0 ${permission === "denied" ? "text-error" : "text-ink-2"}`}>{words}</span>
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
