// app/chat/[id]/Chat.tsx
"use client";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, type UIMessage } from "ai";
import { useEffect } from "react";

const transport = new DefaultChatTransport({
  api: "/api/chat",
  prepareReconnectToStreamRequest: ({ api, id, requestMetadata }) => ({
    api: `${api}/${id}/stream?message=${requestMetadata}`,
  }),
});

export default function Chat(props: { id: string; messages: UIMessage[]; running: string | null }) {
  const { messages, sendMessage, resumeStream, error } = useChat({ id: props.id, messages: props.messages, transport });
  useEffect(() => {
    const timer = setTimeout(() => props.running && resumeStream({ metadata: props.running }));
    return () => clearTimeout(timer); // in development React mounts twice, and the first unmount stops the chat
  }, []); // once, when the page opens
  return (
    <>
      {messages.map(({ id, role, parts }) => (
        <p key={id}>{role}: {parts.map((part) => (part.type === "text" ? part.text : ""))}</p>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={(form) => void sendMessage({ text: String(form.get("text")) })}>
        <input name="text" aria-label="Message" placeholder="Message" /> <button>Send</button>
      </form>
    </>
  );
}
