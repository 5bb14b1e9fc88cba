import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import { describe, expect, it } from "vitest";
import { InterruptibleTransport, messageToSend, SwitchingTransport } from "./transports.ts";

const user: UIMessage = { id: "u1", role: "user", parts: [{ type: "text", text: "Hello" }] };
const assistant: UIMessage = { id: "a1", role: "assistant", parts: [] };

class Listening implements ChatTransport<UIMessage> {
  readonly heard: string[];
  readonly name: string;
  constructor(name: string, heard: string[]) {
    this.name = name;
    this.heard = heard;
  }
  async sendMessages() {
    this.heard.push(`${this.name} sends`);
    return new ReadableStream<UIMessageChunk>();
  }
  async reconnectToStream() {
    this.heard.push(`${this.name} resumes`);
    return null;
  }
  close() {
    this.heard.push(`${this.name} closes`);
  }
}

function switching(mode: "chat" | "live", endLive?: () => Promise<void>) {
  const heard: string[] = [];
  const end = async (id: string) => {
    heard.push(`${id} ends`);
    await endLive?.();
  };
  const transport = new SwitchingTransport(mode, new Listening("chat", heard), new Listening("live", heard), end);
  const send = (
    messages: UIMessage[],
    chatId: string,
    trigger: "submit-message" | "regenerate-message" = "submit-message",
  ) => transport.sendMessages({ trigger, chatId, messageId: undefined, messages, abortSignal: undefined });
  return { transport, heard, send };
}

describe("the switching transport", () => {
  it("speaks through the transport of the present mode", async () => {
    const { transport, heard, send } = switching("chat");
    await send([user], "c1");
    await transport.switchTo("live", "c1", false);
    await send([user], "c1");
    await transport.reconnectToStream({ chatId: "c1" } as never);
    expect(heard).toEqual(["chat sends", "live sends", "live resumes"]);
  });

  it("ends the live session when it is left, before anything is sent over HTTP", async () => {
    const ended = Promise.withResolvers<void>();
    const { transport, heard, send } = switching("live", () => ended.promise);
    void transport.switchTo("chat", "c2", false);
    const sent = send([user], "c2");
    await Promise.resolve();
    expect(heard).toEqual(["live closes", "c2 ends"]);
    ended.resolve();
    await sent;
    expect(heard).toEqual(["live closes", "c2 ends", "chat sends"]);
  });

  it("ends the live session also when nothing is sent then", async () => {
    const { transport, heard } = switching("live");
    await transport.switchTo("chat", "c9", false);
    expect(heard).toEqual(["live closes", "c9 ends"]);
  });

  it("leaves a live session alone in which something waits, and answers it over HTTP", async () => {
    const { transport, heard, send } = switching("live");
    await transport.switchTo("chat", "c3", true);
    await send([user, assistant], "c3");
    expect(heard).toEqual(["live closes", "chat sends"]);
  });

  it("ends such a session before a turn of the user's", async () => {
    const { transport, heard, send } = switching("live");
    await transport.switchTo("chat", "c4", true);
    await send([user], "c4");
    await send([user], "c4");
    expect(heard).toEqual(["live closes", "c4 ends", "chat sends", "chat sends"]);
  });

  it("takes a regeneration for a turn", async () => {
    const { transport, heard, send } = switching("live");
    await transport.switchTo("chat", "c5", true);
    await send([user, assistant], "c5", "regenerate-message");
    expect(heard).toEqual(["live closes", "c5 ends", "chat sends"]);
  });

  it("ends the session of a chat that was left in Live and is opened again in Chat", async () => {
    switching("live").transport.leave("c6");
    const { heard, send } = switching("chat");
    await send([user], "another");
    await send([user], "c6");
    expect(heard).toEqual(["chat sends", "c6 ends", "chat sends"]);
  });

  it("ends nothing when the conversation is live again", async () => {
    const { transport, heard, send } = switching("live");
    await transport.switchTo("chat", "c7", true);
    await transport.switchTo("live", "c7", true);
    await send([user], "c7");
    expect(heard).toEqual(["live closes", "live sends"]);
  });

  it("sends a turn though the session could not be ended: the server will say what is wrong", async () => {
    const { transport, heard, send } = switching("live", () => Promise.reject(new Error("no server")));
    await transport.switchTo("chat", "c8", true);
    await send([user], "c8");
    expect(heard).toEqual(["live closes", "c8 ends", "chat sends"]);
  });
});

describe("the message that counts", () => {
  it("is the last one", () => expect(messageToSend([assistant, user], undefined)).toBe(user));
  it("is an older answer that goes on", () => expect(messageToSend([assistant, user], "a1")).toBe(assistant));
  it("is the last one when an answer is told anew", () => expect(messageToSend([user], "a1")).toBe(user));
});

it("an interruption silences the page, also when the server has nothing more to say", () => {
  const transport = new InterruptibleTransport({ url: "http://localhost/live" });
  const heard: string[] = [];
  const endListening = transport.listen(({ type }) => void heard.push(type));
  transport.interrupt();
  endListening();
  transport.interrupt();
  expect(heard).toEqual(["audio-clear"]);
});
