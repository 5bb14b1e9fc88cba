/** The state of the live connection, as the page shows it. */
import type { LiveChatTransport } from "adk-stream-client";
import { useEffect, useState } from "react";

export type ConnectionState = "connecting" | "live" | "reconnecting" | "closed";

/** After this long without a server the page says so. The transport keeps trying all the same. */
const GIVE_UP_MS = 60_000;

export function useConnection(live: Pick<LiveChatTransport, "listen">): ConnectionState {
  const [state, setState] = useState<ConnectionState>("connecting");
  useEffect(
    () =>
      live.listen((event) => {
        if (event.type === "connection") setState(event.state === "open" ? "live" : "reconnecting");
      }),
    [live],
  );
  useEffect(() => {
    if (state === "live" || state === "closed") return;
    const timer = setTimeout(() => setState("closed"), GIVE_UP_MS);
    return () => clearTimeout(timer);
  }, [state]);
  return state;
}
