/** Reads on with the answer that was running when the chat was opened. */
import type { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { useEffect, useState } from "react";
import { resumeAnswer } from "./transports.ts";

interface ResumedAnswerOptions {
  chat: Chat<UIMessage>;
  /** The id of that answer, if there is one. */
  running: string | undefined;
  lookAtRecord(): Promise<void>;
}

/** Returns whether the page has read all of it. */
export function useResumedAnswer({ chat, running, lookAtRecord }: ResumedAnswerOptions): boolean {
  const [isResumed, setResumed] = useState(running === undefined);
  useEffect(() => {
    if (running === undefined) return;
    void resumeAnswer(chat, running).then(async () => {
      // The server no longer streams an answer that ended a while ago. Its record has it.
      if (!chat.messages.some((message) => message.id === running)) await lookAtRecord();
      setResumed(true);
    });
  }, [running, chat, lookAtRecord]);
  return isResumed;
}
