/** Why the agent does not hear what is said, until it is heard again. */
import type { LiveChatTransport } from "adk-stream-client";
import { useEffect, useState } from "react";

export function useLiveProblem(live: Pick<LiveChatTransport, "listen">): string | undefined {
  const [problem, setProblem] = useState<string>();
  useEffect(
    () =>
      live.listen((event) => {
        if (event.type === "error") setProblem(event.message);
        else if (event.type !== "connection" && event.type !== "attached") setProblem(undefined);
      }),
    [live],
  );
  return problem;
}
