/** One open chat: the conversation, the composer, and the inspector. */
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import { ApprovalDock, Conversation, waitingApprovals } from "../conversation/Conversation.tsx";
import type { Mode, WireLog } from "../wire/log.ts";
import { PartTicks } from "../wire/PartTicks.tsx";
import type { Picked } from "../wire/rows.ts";
import type { ChatsApi, History } from "./api.ts";
import { Composer } from "./Composer.tsx";
import { readFiles } from "./files.ts";
import { Header } from "./Header.tsx";
import { LiveBar } from "./LiveBar.tsx";
import { Panel } from "./Panel.tsx";
import { useAttachments } from "./useAttachments.ts";
import type { OpenChat } from "./useChats.ts";
import { useConversation } from "./useConversation.ts";
import { useMediaQuery } from "./useMediaQuery.ts";
import { useShortcuts } from "./useShortcuts.ts";
import { useSpokenShare } from "./useSpokenShare.ts";
import { Welcome } from "./Welcome.tsx";

/** Loaded when it is first opened. */
const Inspector = lazy(async () => ({ default: (await import("../wire/Inspector.tsx")).Inspector }));

interface WorkspaceProps {
  api: ChatsApi;
  log: WireLog;
  open: OpenChat;
  history: History;
  title: string;
  agent: string;
  mode: Mode;
  onMode(mode: Mode): void;
  isInspecting: boolean;
  onInspect(isInspecting: boolean): void;
  onChats?: () => void;
  /** Something was said: the chat has an address now. */
  onBegun(id: string): void;
  onTurn(): void;
}

export function Workspace({ api, log, open, mode, agent, isInspecting, onInspect, onBegun, ...props }: WorkspaceProps) {
  const { id, isNew } = open;
  const conversation = useConversation({ api, log, id, history: props.history, mode, onTurn: props.onTurn });
  const { chat, isBusy, transport, stop } = conversation;
  const { messages, sendMessage } = chat;
  const composer = useRef<HTMLTextAreaElement>(null);
  const attachments = useAttachments();
  const [picked, setPicked] = useState<Picked>();
  const hasRoom = useMediaQuery("(min-width: 80rem)");

  useShortcuts({ composer, onInspect: () => onInspect(!isInspecting), onStop: isBusy ? () => void stop() : undefined });
  const hasBegun = messages.length > 0;
  useEffect(() => {
    if (hasBegun) onBegun(id);
  }, [hasBegun, id, onBegun]);
  useEffect(() => {
    // Not on touch screens, where the focus brings up a keyboard.
    if (isNew && matchMedia("(pointer: fine)").matches) composer.current?.focus();
  }, [isNew]);

  const onPick = useCallback(
    (part?: Picked) => {
      setPicked(part);
      if (part !== undefined) onInspect(true);
    },
    [onInspect],
  );
  const gutter = useCallback(
    (messageId: string, partKey: string) => (
      <PartTicks log={log} messageId={messageId} partKey={partKey} onPick={onPick} />
    ),
    [log, onPick],
  );

  const shown = useRef(messages);
  shown.current = messages;
  const currentAnswer = useCallback(() => shown.current.findLast(({ role }) => role === "assistant")?.id, []);
  const spokenShare = useSpokenShare(transport.live, currentAnswer);

  const send = async (text: string) => {
    const files = await readFiles(attachments.files);
    attachments.clear();
    await sendMessage({ text, files });
  };
  const changeMode = (next: Mode) => {
    props.onMode(next);
    void transport.switchTo(next, id, waitingApprovals(messages).length > 0);
  };
  return (
    <>
      <div className="flex min-h-0 min-w-0 flex-1 flex-col" {...attachments.target}>
        <Header
          title={props.title}
          agent={agent}
          mode={mode}
          messages={messages}
          canSwitch={!isBusy}
          onMode={changeMode}
          isInspecting={isInspecting}
          onInspect={() => onInspect(!isInspecting)}
          onChats={props.onChats}
        />
        <main
          className={`flex min-h-0 flex-1 flex-col ${attachments.isOver ? "outline-2 -outline-offset-4 outline-focus outline-dashed" : ""}`}
        >
          {hasBegun || conversation.error ? (
            <Conversation
              messages={messages}
              status={chat.status}
              error={conversation.error}
              isRetryable={conversation.isRetryable}
              mode={mode}
              onDecide={conversation.decide}
              onToolOutput={conversation.giveOutput}
              onRetry={conversation.retry}
              onRegenerate={conversation.regenerate}
              onEdit={conversation.edit}
              readTrail={() => api.audit(id)}
              gutter={gutter}
              spokenShare={spokenShare}
            />
          ) : (
            <Welcome
              agent={agent}
              onExample={(text) => {
                // The example disappears, and would take the focus with it.
                composer.current?.focus();
                void sendMessage({ text });
              }}
            />
          )}
          <div className="mx-auto w-full max-w-[46rem] shrink-0 px-2 pb-[max(1rem,env(safe-area-inset-bottom))] sm:px-4">
            <div className="px-3">
              <ApprovalDock messages={messages} />
            </div>
            <Composer
              field={composer}
              files={attachments.files}
              problem={attachments.problem}
              isBusy={isBusy}
              onAttach={attachments.attach}
              onRemove={attachments.remove}
              onSend={(text) => void send(text)}
              onStop={() => void stop()}
            >
              {mode === "live" && (
                <LiveBar live={transport.live} isBusy={isBusy} onReconnect={conversation.reconnect} />
              )}
            </Composer>
          </div>
        </main>
      </div>
      <Panel
        side="right"
        hasRoom={hasRoom}
        isOpen={isInspecting}
        onClose={() => onInspect(false)}
        width="w-[26rem]"
        className="bg-card"
      >
        <Suspense>
          <Inspector log={log} messages={messages} picked={picked} onPick={onPick} onClose={() => onInspect(false)} />
        </Suspense>
      </Panel>
    </>
  );
}
