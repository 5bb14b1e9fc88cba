/** A chat without styles, to begin your own with: `useChat`, approvals, tools of the browser, over HTTP or live. */
import { useChat } from "@ai-sdk/vue";
import { bindChat, LiveChatTransport, runPendingCalls } from "adk-stream-client";
import { type ChatTransport, DefaultChatTransport, generateId, getToolName, isToolUIPart, type UIMessage } from "ai";
import { lastAssistantMessageIsCompleteWithApprovalResponses as isDecided } from "ai";
import { lastAssistantMessageIsCompleteWithToolCalls as isAnswered } from "ai";
import { computed, createApp, defineComponent, ref, watchEffect, withModifiers } from "vue";
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
const isLive = ref(sessionStorage.mode === "live"); // kept: a live session outlives a reload
const transport: ChatTransport<UIMessage> = {
  sendMessages: (options) => (isLive.value ? live : http).sendMessages(options),
  reconnectToStream: (options) => (isLive.value ? live : http).reconnectToStream(options),
};

const App = defineComponent(() => {
  const chat = useChat({
    id,
    messages: history,
    transport,
    sendAutomaticallyWhen: (options) => isDecided(options) || isAnswered(options),
    onToolCall: ({ toolCall }) => void answerCall(id, toolCall, chat.addToolOutput),
  });
  const { messages, status, error, addToolApprovalResponse } = chat;
  const waiting = computed(() =>
    (messages.value.at(-1)?.parts ?? []).filter((part) => isToolUIPart(part) && part.state === "approval-requested"),
  );
  const isBusy = computed(() => ["submitted", "streaming"].includes(status.value) || waiting.value.length > 0);

  // What ran when the page was loaded is read on, and what waited for the browser is done.
  const resumed = running ? chat.resumeStream({ metadata: `?message=${running}` }) : Promise.resolve();
  void resumed.then(() => runPendingCalls(chat, runTool));
  watchEffect((onCleanup) => (isLive.value ? onCleanup(bindChat(chat, live)) : live.close()));
  const switchMode = () => {
    if (isLive.value) liveEnd = fetch(`/api/chat/${id}/stop`, { method: "POST" }).catch(() => {});
    isLive.value = !isLive.value;
    sessionStorage.mode = isLive.value ? "live" : "http";
  };
  const send = ({ target }: Event) => {
    const form = target as HTMLFormElement;
    void chat.sendMessage({ text: String(new FormData(form).get("text")) });
    form.reset();
  };
  return () => (
    <>
      <label><input type="checkbox" checked={isLive.value} disabled={isBusy.value} onChange={switchMode} /> Live</label>
      {messages.value.map(({ id, role, parts }) => (
        <p key={id}>{role}: {parts.map((part) => (part.type === "text" ? part.text : ""))}</p>
      ))}
      {waiting.value.map((call) => (
        <p key={call.toolCallId}>
          {getToolName(call)} {JSON.stringify(call.input)}{" "}
          <button onClick={() => addToolApprovalResponse({ id: call.approval.id, approved: true })}>Approve</button>
          <button onClick={() => addToolApprovalResponse({ id: call.approval.id, approved: false })}>Deny</button>
        </p>
      ))}
      {error.value && <p role="alert">{error.value.message}</p>}
      <form onSubmit={withModifiers(send, ["prevent"])}>
        <input name="text" aria-label="Message" /> <button disabled={isBusy.value}>Send</button>
      </form>
    </>
  );
});

createApp(App).mount("#app");
