/** A chat without styles, to begin your own with: `useChat`, approvals, tools of the browser, over HTTP or live. */
import { useChat } from "@ai-sdk/react";
import { bindChat, LiveChatTransport, runPendingCalls } from "adk-stream-client";
import { DefaultChatTransport, generateId, getToolName, isToolUIPart, type UIMessage } from "ai";
import { lastAssistantMessageIsCompleteWithApprovalResponses as isDecided } from "ai";
import { lastAssistantMessageIsCompleteWithToolCalls as isAnswered } from "ai";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { answerCall, runTool } from "./tools.ts";

const isNew = location.hash === "";
const id = (location.hash ||= `#${generateId()}`).slice(1); // in the address: a reload finds the chat again
const loaded = isNew ? undefined : await fetch(`/api/chat/${id}/messages`);
const history: UIMessage[] = loaded?.ok ? await loaded.json() : [];
const running = loaded?.headers.get("x-adk-running"); // the answer that the history leaves out: it is being told
let liveEnd: Promise<unknown> = Promise.resolve(); // a live session takes no turns over HTTP
const http = new DefaultChatTransport({
  api: "/api/chat",
  fetch: (...args) => liveEnd.then(() => fetch(...args)),
  // By its name an answer is found also when it has just ended.
  prepareReconnectToStreamRequest: ({ api, id, requestMetadata: name = "" }) => ({ api: `${api}/${id}/stream${name}` }),
});
const live = new LiveChatTransport({ url: "/api/chat/live" });

function App() {
  const [isLive, setLive] = useState(sessionStorage.mode === "live"); // kept: a live session outlives a reload
  const chat = useChat({
    id,
    messages: history,
    transport: isLive ? live : http,
    sendAutomaticallyWhen: (options) => isDecided(options) || isAnswered(options),
    onToolCall: ({ toolCall }) => void answerCall(id, toolCall, chat.addToolOutput),
  });
  const { messages, status, error, addToolApprovalResponse } = chat;
  const parts = messages.at(-1)?.parts ?? [];
  const waiting = parts.filter((part) => isToolUIPart(part) && part.state === "approval-requested");
  const isBusy = status === "submitted" || status === "streaming" || waiting.length > 0;

  // What ran when the page was loaded is read on, and what waited for the browser is done.
  useEffect(() => {
    const resumed = running ? chat.resumeStream({ metadata: `?message=${running}` }) : Promise.resolve();
    void resumed.then(() => runPendingCalls(chat, runTool));
  }, []);
  useEffect(() => (isLive ? bindChat(chat, live) : live.close()), [isLive]);
  const switchMode = () => {
    if (isLive) liveEnd = fetch(`/api/chat/${id}/stop`, { method: "POST" }).catch(() => {});
    sessionStorage.mode = isLive ? "http" : "live";
    setLive(!isLive);
  };
  return (
    <>
      <label><input type="checkbox" checked={isLive} disabled={isBusy} onChange={switchMode} /> Live</label>
      {messages.map(({ id, role, parts }) => (
        <p key={id}>{role}: {parts.map((part) => (part.type === "text" ? part.text : ""))}</p>
      ))}
      {waiting.map((call) => (
        <p key={call.toolCallId}>
          {getToolName(call)} {JSON.stringify(call.input)}{" "}
          <button onClick={() => addToolApprovalResponse({ id: call.approval.id, approved: true })}>Approve</button>
          <button onClick={() => addToolApprovalResponse({ id: call.approval.id, approved: false })}>Deny</button>
        </p>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={(form) => void chat.sendMessage({ text: String(form.get("text")) })}>
        <input name="text" aria-label="Message" /> <button disabled={isBusy}>Send</button>
      </form>
    </>
  );
}

createRoot(document.getElementById("app")!).render(<App />);
