/** What a person can do with a chat, one row per step. A step is an object with one of these names as a key. */
import type { FileUIPart, UIMessage } from "ai";
import type { Session, ToolResult, TransportName } from "./session.ts";

export interface Steps {
  send: { send: string; files?: Omit<FileUIPart, "type">[] };
  /** `sendMessage()` without a message: post what is there, as for an approval that was answered late. */
  submit: { submit: true };
  /** Says something else instead of an earlier message, which is counted from the first. */
  edit: { edit: { message: number; text: string } };
  /** The last answer, or the one that is counted from the first message. */
  regenerate: { regenerate: true | { message: number } | { messageId: string } };
  /** What a page does beside the chat, such as its Stop button: a request below the chat's own URL. */
  request: { request: { method: string; path: string } };
  resume: { resume: true };
  stop: { stop: true };
  /** Answers an approval that is open: the first one, or the one at that place among them; of that tool, if named. */
  approve: { approve: { tool?: string; place?: number; approved: boolean; reason?: string } };
  /** Answers the first call of the tool that has no output yet, from the browser's side. */
  output: { output: { tool: string } & ToolResult };
  /** What happens in another tab, which is opened for it and closed again. */
  otherTab: { otherTab: { transport: TransportName; steps: Step[] } };
  waitIdle: { waitIdle: true };
  /**
   * Waits until the last message shows such a part, with this text in it, while the response goes on; or `unasked`,
   * while the page does nothing.
   */
  waitPart: { waitPart: { type: string; state?: string; text?: string; unasked?: boolean } };
  /** Waits until so many requests of the chat's have at least the beginning of an answer; or `unasked`, as above. */
  waitAnswers: { waitAnswers: number; unasked?: boolean };
}

export type Step = Steps[keyof Steps];

type StepTable = { [Name in keyof Steps]: (session: Session, step: Steps[Name]) => Promise<unknown> | void };

const STEPS: StepTable = {
  send(session, { send, files }) {
    const parts = files?.map((file): FileUIPart => ({ type: "file", ...file }));
    void session.act((chat) => chat.sendMessage({ text: send, files: parts }));
  },

  submit(session) {
    void session.act((chat) => chat.sendMessage());
  },

  edit(session, { edit: { message, text } }) {
    const { id } = messageAt(session, message);
    void session.act((chat) => chat.sendMessage({ text, messageId: id }));
  },

  regenerate(session, { regenerate }) {
    let target: { messageId?: string } = {};
    if (regenerate !== true) {
      target = "message" in regenerate ? { messageId: messageAt(session, regenerate.message).id } : regenerate;
    }
    void session.act((chat) => chat.regenerate(target));
  },

  async request(session, { request: { method, path } }) {
    const response = await fetch(`${session.api}/${encodeURIComponent(session.chat.id)}${path}`, { method });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
  },

  resume(session) {
    void session.act((chat) => chat.resumeStream());
  },

  stop(session) {
    return session.act((chat) => chat.stop());
  },

  approve(session, { approve: { tool, place = 0, approved, reason } }) {
    const part = findToolPart(session, tool, ({ state }) => state === "approval-requested", place);
    const id = part.approval?.id;
    if (id === undefined) throw new Error(`the approval of ${part.toolCallId} has no id`);
    return session.act(async (chat) => chat.addToolApprovalResponse?.({ id, approved, reason }));
  },

  output(session, { output: answer }) {
    const { tool, ...result } = answer;
    const { toolCallId } = findToolPart(session, tool, ({ state }) => !state.startsWith("output-"));
    return session.act(() => session.answerCall(tool, toolCallId, result));
  },

  async otherTab(session, { otherTab: { transport, steps } }) {
    const response = await fetch(`${session.api}/${encodeURIComponent(session.chat.id)}/messages`);
    const tab = session.openTab(transport, (await response.json()) as UIMessage[]);
    for (const step of steps) {
      await takeStep(tab, step);
      await tab.untilIdle();
    }
    tab.close();
  },

  waitIdle(session) {
    return session.untilIdle();
  },

  waitPart(session, { waitPart: { type, state, text, unasked } }) {
    return session.untilShown(() => {
      const parts: { type: string; state?: string; text?: string }[] = session.lastMessage?.parts ?? [];
      return parts.some(
        (part) =>
          part.type === type &&
          (state === undefined || part.state === state) &&
          (text === undefined || part.text?.includes(text)),
      );
    }, { unasked });
  },

  waitAnswers(session, { waitAnswers, unasked }) {
    return session.untilShown(() => {
      const answered = session.recorder.requests.filter(({ response }) => response !== null);
      return answered.length >= waitAnswers;
    }, { unasked });
  },
};

export async function takeStep(session: Session, step: Step): Promise<void> {
  const name = Object.keys(step).find((key): key is keyof Steps => key in STEPS);
  if (name === undefined) {
    throw new Error(`no such step: a step is one of ${Object.keys(STEPS).join(", ")}`);
  }
  const take = STEPS[name] as (session: Session, step: Step) => Promise<unknown> | void;
  await take(session, step);
}

interface ToolPart {
  toolName: string;
  toolCallId: string;
  state: string;
  approval?: { id: string };
}

function messageAt(session: Session, place: number): UIMessage {
  const message = session.chat.messages[place];
  if (message === undefined) throw new Error(`there are ${session.chat.messages.length} messages, none at ${place}`);
  return message;
}

function findToolPart(
  session: Session,
  tool: string | undefined,
  accepts: (part: ToolPart) => boolean,
  place = 0,
): ToolPart {
  const parts = session.chat.messages.flatMap(toolParts);
  const found = parts.filter((part) => (tool === undefined || part.toolName === tool) && accepts(part)).at(place);
  if (found !== undefined) return found;
  const shown = parts.map((part) => `${part.toolName} ${part.state}`).join(", ");
  throw new Error(`no call${tool === undefined ? "" : ` of ${tool}`} is waiting for this; shown: ${shown || "none"}`);
}

function toolParts(message: UIMessage): ToolPart[] {
  return message.parts.flatMap((part) => {
    if (!("toolCallId" in part)) return [];
    const toolName = "toolName" in part ? part.toolName : part.type.slice("tool-".length);
    return [{ ...part, toolName }];
  });
}
