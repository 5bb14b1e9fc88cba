// app/chat/[id]/page.tsx
import type { UIMessage } from "ai";
import { cookies } from "next/headers";
import { Suspense } from "react";
import Chat from "./Chat";
import SignIn from "./SignIn";

const python = process.env.CHAT_ORIGIN ?? "http://127.0.0.1:8000";
type Props = { params: Promise<{ id: string }> };

export default function Page(props: Props) {
  return <Suspense><LoadedChat {...props} /></Suspense>; // `cacheComponents` wants it around whatever reads cookies
}

async function LoadedChat({ params }: Props) {
  const { id } = await params;
  const headers = { cookie: (await cookies()).toString() };
  const response = await fetch(`${python}/api/chat/${id}/messages`, { headers, cache: "no-store" });
  if (response.status === 401) return <SignIn />;
  const messages: UIMessage[] = response.ok ? await response.json() : []; // 404: a new chat
  return <Chat id={id} messages={messages} running={response.headers.get("x-adk-running")} />;
}
