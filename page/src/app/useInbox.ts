/** What waits for a decision of this person, in whichever chat. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { ChatsApi, InboxDecision, InboxPage } from "./api.ts";
import { type InboxItem, withOutcome, withoutProblem, withPage, withProblem } from "./inbox.ts";

/** How often a visible page asks: somebody who looks at the inbox wants to see what comes. */
const OPEN_MS = 5_000;
const CLOSED_MS = 15_000;

export interface Inbox {
  items: InboxItem[];
  /** How many wait, as far as they are loaded. */
  count: number;
  hasMore: boolean;
  /** The server has answered. */
  isLoaded: boolean;
  /** The last attempt to refresh it failed. */
  isStale: boolean;
  showMore(): void;
  decide(id: string, decision: InboxDecision): Promise<void>;
}

export function useInbox(api: ChatsApi, isOpen: boolean): Inbox {
  const [items, setItems] = useState<InboxItem[]>([]);
  const [state, setState] = useState({ hasMore: false, isLoaded: false, isStale: false });
  const newest = useRef(0);
  const pages = useRef(1);

  const refresh = useCallback(async () => {
    const asked = ++newest.current;
    try {
      const page = await load(api, pages.current);
      if (asked !== newest.current) return; // answers may overtake each other, and decisions
      setItems((shown) => withPage(shown, page));
      setState({ hasMore: page.cursor !== null, isLoaded: true, isStale: false });
    } catch {
      if (asked === newest.current) setState((before) => ({ ...before, isStale: true }));
    }
  }, [api]);

  useEffect(() => {
    const refreshIfVisible = () => document.visibilityState === "visible" && void refresh();
    void refresh();
    const timer = setInterval(refreshIfVisible, isOpen ? OPEN_MS : CLOSED_MS);
    document.addEventListener("visibilitychange", refreshIfVisible);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", refreshIfVisible);
      // Whoever comes back to it wants to see what waits.
      pages.current = 1;
      setItems((shown) => shown.filter((item) => item.state === "waiting"));
    };
  }, [refresh, isOpen]);

  const decide = useCallback(
    async (id: string, decision: InboxDecision) => {
      setItems((shown) => withoutProblem(shown, id));
      try {
        const recorded = await api.decide(id, decision);
        newest.current++; // what is under way may be older
        setItems((shown) => withOutcome(shown, recorded));
      } catch (error) {
        newest.current++;
        setItems((shown) => withProblem(shown, id, error as Error));
      }
      await refresh();
    },
    [api, refresh],
  );

  const showMore = useCallback(() => {
    pages.current++;
    void refresh();
  }, [refresh]);

  const count = items.filter((item) => item.state === "waiting").length;
  return { items, count, ...state, showMore, decide };
}

/** The first pages as one. */
async function load(api: ChatsApi, pages: number): Promise<InboxPage> {
  let page = await api.approvals(null);
  for (let loaded = 1; loaded < pages && page.cursor !== null; loaded++) {
    const { approvals, cursor } = await api.approvals(page.cursor);
    page = { approvals: [...page.approvals, ...approvals], cursor };
  }
  return page;
}
