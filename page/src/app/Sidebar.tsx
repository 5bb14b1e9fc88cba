/** The chats, which of them wait for the person, and what this page may run. */
import { Inbox, Plus, Trash2, X } from "lucide-react";
import { useState } from "react";
import { BrowserToolList } from "../tools/index.ts";
import { AgentChoice } from "./AgentChoice.tsx";
import type { ChatSummary } from "./api.ts";
import { age } from "./age.ts";
import { Logo } from "./Logo.tsx";
import { PersonChoice } from "./PersonChoice.tsx";
import { INBOX } from "./useChats.ts";

interface SidebarProps {
  chats: ChatSummary[];
  openId: string;
  /** What waits in the inbox. */
  inbox: { count: number; hasMore: boolean };
  onNew(): void;
  onDelete(id: string): Promise<void>;
  /** Set in a drawer, since only that can be closed. */
  onClose?: () => void;
}

export function Sidebar({ chats, openId, inbox, onNew, onDelete, onClose }: SidebarProps) {
  return (
    <>
      <div className="flex h-14 shrink-0 items-center gap-2.5 px-4">
        <Logo />
        <span className="text-[15px] font-semibold">adk stream</span>
        {onClose && (
          <button
            type="button"
            aria-label="Close chats"
            className="ml-auto rounded-md p-2 text-ink-2 hover:bg-card"
            onClick={onClose}
          >
            <X size={16} aria-hidden />
          </button>
        )}
      </div>
      <AgentChoice />
      <PersonChoice />
      <div className="px-2">
        <button
          type="button"
          onClick={onNew}
          className="flex w-full items-center gap-2.5 rounded-lg border border-line-strong bg-card px-3 py-1.5 text-left font-medium hover:border-ink"
        >
          <Plus size={16} aria-hidden /> New chat
        </button>
        <a
          href={`#${INBOX}`}
          aria-current={openId === INBOX ? "page" : undefined}
          onClick={onClose}
          className="mt-1 flex items-center gap-2.5 rounded-lg px-3 py-1.5 text-ink-2 hover:bg-card/60 aria-[current=page]:bg-card aria-[current=page]:font-medium aria-[current=page]:text-ink"
        >
          <Inbox size={16} aria-hidden /> Inbox
          {inbox.count > 0 && (
            <span className="ml-auto text-xs font-semibold text-approval">
              {inbox.count}
              {inbox.hasMore && "+"}
              <span className="sr-only"> to decide</span>
            </span>
          )}
        </a>
      </div>
      <nav aria-label="Chats" className="mt-2 min-h-0 flex-1 overflow-y-auto px-2 pb-3">
        {chats.length === 0 ? (
          <p className="px-3 py-2 text-sm text-ink-2">Your chats will appear here.</p>
        ) : (
          <ul className="space-y-0.5">
            {chats.map((chat) => (
              <Entry key={chat.id} chat={chat} isOpen={chat.id === openId} onDelete={onDelete} onChosen={onClose} />
            ))}
          </ul>
        )}
      </nav>
      <div className="shrink-0">
        <BrowserToolList />
      </div>
    </>
  );
}

interface EntryProps {
  chat: ChatSummary;
  isOpen: boolean;
  onDelete(id: string): Promise<void>;
  onChosen?: () => void;
}

function Entry({ chat, isOpen, onDelete, onChosen }: EntryProps) {
  const [step, setStep] = useState<"shown" | "asked" | "deleting" | "failed">("shown");
  const title = chat.title || "Untitled chat";
  const remove = async () => {
    setStep("deleting");
    try {
      await onDelete(chat.id);
    } catch {
      setStep("failed");
    }
  };
  if (step !== "shown")
    return (
      <li className="rounded-lg border border-line-strong bg-card px-3 py-2 text-sm">
        <p role={step === "failed" ? "alert" : undefined}>
          {step === "failed" ? "The chat could not be deleted." : <>Delete “{title}” for good?</>}
        </p>
        <div className="mt-2 flex gap-2">
          <button
            type="button"
            autoFocus
            className="rounded-md border border-line-strong px-2.5 py-0.5 hover:border-ink"
            onClick={() => setStep("shown")}
          >
            Keep
          </button>
          <button
            type="button"
            disabled={step === "deleting"}
            className="rounded-md bg-ink px-2.5 py-0.5 text-paper disabled:opacity-60"
            onClick={remove}
          >
            Delete
          </button>
        </div>
      </li>
    );
  return (
    <li className={`group flex items-center rounded-lg ${isOpen ? "bg-card" : "hover:bg-card/60"}`}>
      <a
        href={`#${encodeURIComponent(chat.id)}`}
        aria-current={isOpen ? "page" : undefined}
        onClick={onChosen}
        className={`flex min-w-0 flex-1 items-baseline gap-2 rounded-lg py-1.5 pl-3 ${isOpen ? "font-medium text-ink" : "text-ink-2"}`}
      >
        <span className="min-w-0 flex-1 truncate">{title}</span>
        {chat.waiting ? (
          <span className="shrink-0 text-xs font-semibold text-approval">waits</span>
        ) : (
          <span className="shrink-0 text-xs text-ink-2">{age(chat.updatedAt)}</span>
        )}
      </a>
      <button
        type="button"
        aria-label={`Delete chat ${title}`}
        title="Delete"
        className="m-1 shrink-0 rounded-md p-1 text-ink-2 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 hover:text-ink focus-visible:opacity-100 pointer-coarse:opacity-100"
        onClick={() => setStep("asked")}
      >
        <Trash2 size={14} aria-hidden />
      </button>
    </li>
  );
}
