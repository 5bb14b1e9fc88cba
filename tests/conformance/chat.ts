/** The `chat` command: a conversation with a server, and everything a test may want to know about it. */
import type { UIMessage } from "ai";
import type { RecordedRequest } from "./recording.ts";
import { loadRelease, type ReleaseName } from "./releases.ts";
import { type Callbacks, Session, type SessionOptions } from "./session.ts";
import { type Step, takeStep } from "./steps.ts";
import { errorText } from "./wire.ts";

export interface ChatCommand extends SessionOptions {
  release: ReleaseName;
  steps: Step[];
  timeoutMs: number;
}

export interface ChatAnswer extends Callbacks {
  messages: UIMessage[];
  status: string;
  error: string | null;
  requests: RecordedRequest[];
  /** Frames of the server's that belong to no request, where there is a socket. */
  ownFrames: unknown[];
  /** What other tabs have shown when they were closed. */
  otherTabs: UIMessage[][];
  /** True when the client went on posting by itself and had to be stopped. */
  resendLoop: boolean;
  /** Why the steps could not be taken to the end. */
  failure?: string;
}

export async function chat(command: ChatCommand): Promise<ChatAnswer> {
  const release = await loadRelease(command.release);
  const deadline = AbortSignal.timeout(command.timeoutMs);
  const session = new Session(release, command, deadline);
  let failure = await takeSteps(session, command.steps);
  if (failure !== undefined) await session.chat.stop();
  await session.recorder.settled();
  if (deadline.aborted) failure ??= "the client was done, but a response did not end in time";
  session.close();
  return {
    messages: session.chat.messages,
    status: session.chat.status,
    error: session.chat.error === undefined ? null : errorText(session.chat.error),
    requests: session.recorder.requests,
    ownFrames: session.recorder.ownFrames,
    otherTabs: session.otherTabs.map((tab) => tab.chat.messages),
    resendLoop: session.resendLoop,
    ...session.callbacks,
    ...(failure === undefined ? {} : { failure }),
  };
}

async function takeSteps(session: Session, steps: Step[]): Promise<string | undefined> {
  for (const [index, step] of [...steps, { waitIdle: true } as const].entries()) {
    try {
      await takeStep(session, step);
    } catch (error) {
      return `step ${index} ${JSON.stringify(step)}: ${errorText(error)}`;
    }
  }
  return undefined;
}
