/** The page: the chats, and the one that is open. */
import { lazy, Suspense, useEffect, useState } from "react";
import { WireLog } from "../wire/log.ts";
import { agentName } from "./AgentChoice.tsx";
import { apiUrl, ChatsApi, type History } from "./api.ts";
import { Panel } from "./Panel.tsx";
import { demoUser } from "./PersonChoice.tsx";
import { Sidebar } from "./Sidebar.tsx";
import { INBOX, type OpenChat, useChats } from "./useChats.ts";
import { useInbox } from "./useInbox.ts";
import { useMediaQuery } from "./useMediaQuery.ts";
import { useSetting } from "./useSetting.ts";
import { Workspace } from "./Workspace.tsx";

/** Loaded when it is first opened. */
const InboxView = lazy(async () => ({ default: (await import("./InboxView.tsx")).InboxView }));

const ofThisTab = () => sessionStorage;

export function App() {
  const [api] = useState(() => new ChatsApi(apiUrl(), demoUser()));
  const [log] = useState(() => new WireLog());
  const chats = useChats(api);
  const { open } = chats;
  const isInbox = open.id === INBOX;
  const inbox = useInbox(api, isInbox);
  const loaded = useHistory(api, open);
  const [mode, setMode] = useSetting("adk-stream-mode", ["chat", "live"], ofThisTab);
  const [inspector, setInspector] = useSetting("adk-stream-inspector", ["closed", "open"], ofThisTab);
  const [isListOpen, setListOpen] = useState(false);
  const hasRoom = useMediaQuery("(min-width: 64rem)");

  const title = isInbox ? "Inbox" : chats.list.find(({ id }) => id === open.id)?.title || "New chat";
  const waiting = chats.list.filter((chat) => chat.waiting).length;
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${title} · adk stream`;
  }, [title, waiting]);

  const closeList = () => setListOpen(false);
  return (
    <div className="flex h-dvh overflow-hidden">
      <Panel
        side="left"
        label="Sidebar"
        hasRoom={hasRoom}
        isOpen={hasRoom || isListOpen}
        onClose={closeList}
        width="w-60"
        className="bg-paper-2"
      >
        <Sidebar
          chats={chats.list}
          openId={open.id}
          inbox={inbox}
          onNew={() => {
            closeList();
            chats.startNew();
          }}
          onDelete={chats.remove}
          onClose={hasRoom ? undefined : closeList}
        />
      </Panel>
      {isInbox ? (
        <Suspense>
          <InboxView inbox={inbox} onChats={hasRoom ? undefined : () => setListOpen(true)} />
        </Suspense>
      ) : loaded.state === "ready" ? (
        <Workspace
          key={open.id}
          api={api}
          log={log}
          open={open}
          history={loaded.history}
          title={title}
          agent={agentName()}
          mode={mode}
          onMode={setMode}
          isInspecting={inspector === "open"}
          onInspect={(isOpen) => setInspector(isOpen ? "open" : "closed")}
          onChats={hasRoom ? undefined : () => setListOpen(true)}
          onBegun={chats.keep}
          onTurn={chats.refresh}
        />
      ) : (
        <NotOpenYet loaded={loaded} onNew={chats.startNew} />
      )}
    </div>
  );
}

type Loaded =
  { state: "ready"; id: string; history: History } | { state: "loading" } | { state: "failed"; retry(): void };

const NOTHING: History = { messages: [], running: undefined };

function useHistory(api: ChatsApi, { id, isNew }: OpenChat): Loaded {
  const [loaded, setLoaded] = useState<Loaded>({ state: "loading" });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (isNew || id === INBOX) return;
    let isWanted = true;
    setLoaded({ state: "loading" });
    api.history(id).then(
      (history) => isWanted && setLoaded({ state: "ready", id, history }),
      () => isWanted && setLoaded({ state: "failed", retry: () => setAttempt((count) => count + 1) }),
    );
    return () => {
      isWanted = false;
    };
  }, [api, id, isNew, attempt]);
  if (isNew) return { state: "ready", id, history: NOTHING };
  // Until the effect has run, `loaded` is about the chat before.
  return loaded.state === "ready" && loaded.id !== id ? { state: "loading" } : loaded;
}

function NotOpenYet({ loaded, onNew }: { loaded: Loaded; onNew(): void }) {
  return (
    <main className="grid flex-1 place-items-center p-6">
      <h1 className="sr-only">adk stream</h1>
      {loaded.state === "failed" ? (
        <div role="alert" className="text-center">
          <p>This chat could not be opened. It may have been deleted.</p>
          <p className="mt-3 flex justify-center gap-3">
            <button type="button" className="rounded-lg border border-line-strong px-3 py-1" onClick={loaded.retry}>
              Try again
            </button>
            <button type="button" className="rounded-lg border border-line-strong px-3 py-1" onClick={onNew}>
              New chat
            </button>
          </p>
        </div>
      ) : (
        <p role="status" className="text-ink-2">
          Opening…
        </p>
      )}
    </main>
  );
}
