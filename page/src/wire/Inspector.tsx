/** What is on the wire, and what it tells about the session. Draws nothing unless it is open. */
import type { UIMessage } from "ai";
import { Download, Trash2, X } from "lucide-react";
import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { useSetting } from "../app/useSetting.ts";
import { IconButton } from "../conversation/IconButton.tsx";
import { ChunkList } from "./ChunkList.tsx";
import { FAMILY_COLOUR, FAMILY_NAME } from "./colours.ts";
import { Figure, MessageView, RawView, RequestView } from "./details.tsx";
import type { Family, WireEntry, WireLog } from "./log.ts";
import { ArtifactsView, StateView, TraceView } from "./panels.tsx";
import { downloadRecording } from "./recording.ts";
import { countFamilies, entriesOf, figuresOfLastTurn, foldedRows, isChunk, type Picked } from "./rows.ts";
import { panelId, Tabs, tabId } from "./Tabs.tsx";

const TABS = ["Chunks", "Trace", "State", "Artifacts", "Message", "Request", "Raw"] as const;

const ofThisTab = () => sessionStorage;

export interface InspectorProps {
  log: WireLog;
  messages: UIMessage[];
  picked?: Picked;
  onPick(picked?: Picked): void;
  onClose(): void;
}

export function Inspector({ log, messages, picked, onPick, onClose }: InspectorProps): ReactNode {
  useSyncExternalStore(log.subscribe, () => log.version);
  const [tab, setTab] = useSetting("adk-stream-inspector-tab", TABS, ofThisTab);
  useEffect(() => {
    if (picked !== undefined) setTab("Chunks");
  }, [picked, setTab]);
  const entries = log.entries();
  return (
    <section aria-label="Inspector" className="flex h-full min-h-0 flex-col bg-card text-ink">
      <header className="grid gap-1 border-b border-line p-2">
        <div className="flex items-center">
          <p className="mr-auto px-2 text-sm font-medium">Inspector</p>
          <IconButton label="Download recording" onClick={() => downloadRecording(log)}>
            <Download size={16} aria-hidden />
          </IconButton>
          <IconButton label="Clear the log" onClick={() => log.clear()}>
            <Trash2 size={16} aria-hidden />
          </IconButton>
          <IconButton label="Close the inspector" onClick={onClose}>
            <X size={16} aria-hidden />
          </IconButton>
        </div>
        <Tabs names={TABS} chosen={tab} onChoose={setTab} />
      </header>
      <div role="tabpanel" id={panelId(tab)} aria-labelledby={tabId(tab)} className="flex min-h-0 flex-1 flex-col">
        {tab === "Chunks" && <Chunks log={log} entries={entries} picked={picked} onPick={onPick} />}
        {tab === "Trace" && <TraceView messages={messages} entries={entries} picked={picked} onPick={onPick} />}
        {tab === "State" && <StateView messages={messages} />}
        {tab === "Artifacts" && <ArtifactsView messages={messages} />}
        {tab === "Message" && <MessageView messages={messages} picked={picked} />}
        {tab === "Request" && <RequestView entries={entries} />}
        {tab === "Raw" && <RawView entries={entries} />}
      </div>
    </section>
  );
}

interface ChunksProps {
  log: WireLog;
  entries: readonly WireEntry[];
  picked: Picked | undefined;
  onPick(picked?: Picked): void;
}

function Chunks({ log, entries, picked, onPick }: ChunksProps) {
  const [chosen, setChosen] = useState<ReadonlySet<Family>>(new Set());
  const ofPart = picked === undefined ? entries : entriesOf(log, picked);
  const shown = chosen.size === 0 ? ofPart : ofPart.filter(({ family }) => chosen.has(family));
  const { firstChunkMs, lastChunkMs } = figuresOfLastTurn(entries);
  const toggle = (family: Family) => {
    const next = new Set(chosen);
    if (!next.delete(family)) next.add(family);
    setChosen(next);
  };
  return (
    <>
      <dl className="grid grid-cols-4 gap-2 border-b border-line px-3 py-2.5">
        <Figure name="first chunk" value={firstChunkMs === undefined ? "–" : `${Math.round(firstChunkMs)} ms`} />
        <Figure name="last turn" value={lastChunkMs === undefined ? "–" : `${(lastChunkMs / 1000).toFixed(1)} s`} />
        <Figure name="chunks" value={String(entries.filter(isChunk).length)} />
        <Figure name="pings" value={String(log.pings)} />
      </dl>
      {picked === undefined ? null : (
        <p className="flex items-center justify-between gap-2 border-b border-line px-3 py-2 text-sm">
          <span className="min-w-0 truncate">
            {log.part(picked.messageId, picked.partKey)?.count ?? 0} chunks of{" "}
            <span className="font-mono text-xs">{picked.partKey}</span>
          </span>
          <button type="button" className="shrink-0 underline" onClick={() => onPick(undefined)}>
            Show all
          </button>
        </p>
      )}
      <div role="group" aria-label="Families" className="flex flex-wrap gap-1.5 border-b border-line px-3 py-2.5">
        {[...countFamilies(ofPart)].map(([family, count]) => (
          <button
            key={family}
            type="button"
            aria-pressed={chosen.has(family)}
            onClick={() => toggle(family)}
            className="flex items-center gap-1.5 rounded-full border border-line px-2.5 py-1 text-xs aria-pressed:border-ink aria-pressed:bg-paper-2"
          >
            <span className={`size-2 rounded-full ${FAMILY_COLOUR[family]}`} />
            {FAMILY_NAME[family]} <span className="font-mono text-ink-2">{count}</span>
          </button>
        ))}
      </div>
      <ChunkList rows={foldedRows(shown)} />
    </>
  );
}
