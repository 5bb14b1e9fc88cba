// app/chat/[id]/page.tsx
import type { UIMessage } from "ai";
import { cookies } from "next/headers";
import Chat from "./Chat";

const python = process.env.CHAT_ORIGIN ?? "http://127.0.0.1:8000";

export default async function Page({ params }: { params: Promise<{ id: string }> }) {
  const { id } = await params;
  const headers = { cookie: (await cookies()).toString() };
  const response = await fetch(`${python}/api/chat/${id}/messages`, { headers, cache: "no-store" });
  if (response.status === 401) return <p>Sign in first.</p>;
  const messages: UIMessage[] = response.ok ? await response.json() : []; // 404: a new chat
  return <Chat id={id} messages={messages} running={response.headers.get("x-adk-running")} />;
}
