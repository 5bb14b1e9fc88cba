/** The list of chats, and which of them is open: its id is the page's fragment. */
import { generateId } from "ai";
import { useCallback, useEffect, useRef, useState } from "react";
import type { ChatsApi, ChatSummary } from "./api.ts";

/** How often a visible page asks what waits in the other chats. */
const REFRESH_MS = 15_000;

/** No chat has this id: it is the address of the inbox, here as on the server. */
export const INBOX = "approvals";

export interface OpenChat {
  id: string;
  /** Nothing of it is on the server yet. */
  isNew: boolean;
}

export interface Chats {
  list: ChatSummary[];
  open: OpenChat;
  refresh(): void;
  startNew(): void;
  /** Something was said in the chat: from now on it has an address. */
  keep(id: string): void;
  remove(id: string): Promise<void>;
}

export function useChats(api: ChatsApi): Chats {
  const [list, setList] = useState<ChatSummary[]>([]);
  const [open, setOpen] = useState<OpenChat>(() => fromFragment() ?? newChat());
  const newest = useRef(0);

  const refresh = useCallback(() => {
    const asked = ++newest.current;
    api.list().then(
      // Answers may overtake each other.
      (chats) => asked === newest.current && setList(chats),
      // The list stays as it was; a turn will say that the server is gone.
      () => {},
    );
  }, [api]);

  useEffect(() => {
    const refreshIfVisible = () => document.visibilityState === "visible" && refresh();
    refresh();
    const timer = setInterval(refreshIfVisible, REFRESH_MS);
    document.addEventListener("visibilitychange", refreshIfVisible);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", refreshIfVisible);
    };
  }, [refresh]);

  useEffect(() => {
    const followFragment = () => {
      const named = fromFragment();
      setOpen((current) => (named?.id === current.id ? current : (named ?? newChat())));
    };
    addEventListener("hashchange", followFragment);
    return () => removeEventListener("hashchange", followFragment);
  }, []);

  const startNew = useCallback(() => {
    history.pushState(null, "", location.pathname + location.search);
    setOpen(newChat());
  }, []);

  const keep = useCallback((id: string) => {
    const fragment = `#${encodeURIComponent(id)}`;
    if (location.hash !== fragment) history.replaceState(null, "", fragment);
  }, []);

  const remove = useCallback(
    async (id: string) => {
      await api.delete(id);
      setList((chats) => chats.filter((chat) => chat.id !== id));
      if (fromFragment()?.id === id) startNew();
      refresh();
    },
    [api, refresh, startNew],
  );

  return { list, open, refresh, startNew, keep, remove };
}

function newChat(): OpenChat {
  return { id: `chat-${generateId()}`, isNew: true };
}

function fromFragment(): OpenChat | undefined {
  try {
    const id = decodeURIComponent(location.hash.slice(1));
    return id === "" ? undefined : { id, isNew: false };
  } catch {
    return undefined;
  }
}
