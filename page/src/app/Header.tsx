/** The title of the chat, its mode, and the page's own switches. */
import type { UIMessage } from "ai";
import { Menu, Moon, PanelRight, Sun } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { Mode } from "../wire/log.ts";
import { ExportMenu } from "./ExportMenu.tsx";
import { chooseTheme, chosenTheme } from "./theme.ts";
import { useMediaQuery } from "./useMediaQuery.ts";

interface HeaderProps {
  title: string;
  agent: string;
  mode: Mode;
  canSwitch: boolean;
  onMode(mode: Mode): void;
  isInspecting: boolean;
  onInspect(): void;
  /** What can be exported. */
  messages: UIMessage[];
  /** Opens the drawer with the chats, where they are in one. */
  onChats?: () => void;
}

export function Header({ title, agent, mode, canSwitch, onMode, isInspecting, onInspect, ...props }: HeaderProps) {
  const { messages, onChats } = props;
  const [chosen, setChosen] = useState(chosenTheme);
  const isSystemDark = useMediaQuery("(prefers-color-scheme: dark)");
  const theme = chosen ?? (isSystemDark ? "dark" : "light");
  const other = theme === "dark" ? "light" : "dark";
  return (
    <header className="flex h-14 shrink-0 items-center gap-2 border-b border-line px-2 sm:px-4">
      {onChats && (
        <HeaderButton label="Chats" onClick={onChats}>
          <Menu size={18} aria-hidden />
        </HeaderButton>
      )}
      <h1 className="min-w-0 flex-1 truncate text-[15px]">
        <span className="font-semibold">{title}</span>
        {agent && <span className="ml-2 font-mono text-[13px] text-ink-2 max-sm:hidden">{agent}</span>}
      </h1>
      <ModeSwitch mode={mode} canSwitch={canSwitch} onMode={onMode} />
      <ExportMenu messages={messages} title={title} agent={agent} />
      <HeaderButton
        label={`Use the ${other} theme`}
        onClick={() => {
          chooseTheme(other);
          setChosen(other);
        }}
      >
        {theme === "dark" ? <Sun size={17} aria-hidden /> : <Moon size={17} aria-hidden />}
      </HeaderButton>
      <HeaderButton label="Inspector" hint="Inspector (Ctrl+I)" isExpanded={isInspecting} onClick={onInspect}>
        <PanelRight size={17} aria-hidden />
      </HeaderButton>
    </header>
  );
}

const MODES = [
  { mode: "chat", name: "Chat", hint: "ADK SSE", wire: "SSE" },
  { mode: "live", name: "Live", hint: "ADK BIDI", wire: "WebSocket" },
] as const;

function ModeSwitch({ mode, canSwitch, onMode }: Pick<HeaderProps, "mode" | "canSwitch" | "onMode">) {
  return (
    <div role="radiogroup" aria-label="Mode" className="flex shrink-0 rounded-lg border border-line bg-paper-2 p-0.5">
      {MODES.map(({ mode: own, name, hint, wire }) => (
        <label
          key={own}
          title={hint}
          className="relative flex items-center gap-1.5 rounded-md border border-transparent px-2.5 py-1 text-sm text-ink-2 has-checked:border-line has-checked:bg-card has-checked:text-ink has-focus-visible:outline-2 has-focus-visible:outline-focus"
        >
          {/* Covers the whole label, so that every click on the label hits it. */}
          <input
            type="radio"
            name="mode"
            className="absolute inset-0 cursor-pointer appearance-none rounded-md outline-none disabled:cursor-not-allowed"
            aria-label={name}
            checked={mode === own}
            disabled={!canSwitch && mode !== own}
            onChange={() => onMode(own)}
          />
          {own === "live" && (
            <span className={`size-1.5 rounded-full ${mode === "live" ? "bg-audio" : "bg-line-strong"}`} aria-hidden />
          )}
          <span>{name}</span>
          <span className="font-mono text-[11px] text-ink-2 max-md:hidden" aria-hidden>
            {wire}
          </span>
        </label>
      ))}
    </div>
  );
}

interface HeaderButtonProps {
  label: string;
  hint?: string;
  isExpanded?: boolean;
  onClick(): void;
  children: ReactNode;
}

function HeaderButton({ label, hint, isExpanded, onClick, children }: HeaderButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={hint ?? label}
      aria-expanded={isExpanded}
      onClick={onClick}
      className="shrink-0 rounded-lg p-2 text-ink-2 hover:bg-paper-2 hover:text-ink aria-expanded:bg-paper-2 aria-expanded:text-ink"
    >
      {children}
    </button>
  );
}
