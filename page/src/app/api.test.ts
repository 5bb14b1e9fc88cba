import { ChatRefusedError } from "adk-stream-client";
import { afterEach, expect, it, vi } from "vitest";
import { apiUrl, ChatsApi, isDisconnect, mayRetry, readableError, refusalOf } from "./api.ts";
import { age } from "./age.ts";

afterEach(() => {
  vi.unstubAllGlobals();
  document.head.innerHTML = "";
});

it("the chat API is where the page says, relative to its own address", () => {
  document.head.innerHTML = '<base href="https://example.test/agents/demo/"><meta name="adk-api" content="api/chat">';
  expect(apiUrl()).toBe("https://example.test/agents/demo/api/chat");
  document.head.innerHTML = '<base href="https://example.test/demo/"><meta name="adk-api" content="/elsewhere/">';
  expect(apiUrl()).toBe("https://example.test/elsewhere");
});

function serverThat(answer: Response) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (url: string, { method }: RequestInit) => {
    asked.push(`${method} ${url}`);
    return answer;
  });
  return asked;
}

it("asks the documented routes, with ids that need it quoted", async () => {
  const asked = serverThat(new Response(null, { status: 204 }));
  const api = new ChatsApi("https://example.test/api/chat");
  await api.stop("a?b");
  await api.delete("a#b");
  expect(asked).toEqual([
    "POST https://example.test/api/chat/a%3Fb/stop",
    "DELETE https://example.test/api/chat/a%23b",
  ]);
});

it("a refusal of the server's is told in its own words", async () => {
  serverThat(new Response('{"error": {"code": "not-found", "message": "There is no such chat."}}', { status: 404 }));
  const error = await new ChatsApi("").history("c1").then(
    () => undefined,
    (refused: Error) => refused,
  );
  expect(refusalOf(error!)).toBe("There is no such chat.");
  expect(readableError(error!).message).toBe("There is no such chat.");
});

it("a history comes with the name of the answer that it leaves out", async () => {
  const api = new ChatsApi("https://example.test/api/chat");
  const asked = serverThat(Response.json([], { headers: { "x-adk-running": "a1" } }));
  expect(await api.history("a?b")).toEqual({ messages: [], running: "a1" });
  expect(asked).toEqual(["GET https://example.test/api/chat/a%3Fb/messages"]);
  serverThat(Response.json([]));
  expect(await api.history("c1")).toEqual({ messages: [], running: undefined });
});

it("refusals of both modes are told from lost connections and from everything else", () => {
  expect(refusalOf(new ChatRefusedError("This chat is still answering.", "run-active"))).toBe(
    "This chat is still answering.",
  );
  for (const other of ["null", "[]", '{"error": 1}', "not JSON"]) expect(refusalOf(new Error(other))).toBeUndefined();
  expect(isDisconnect(new TypeError("Failed to fetch"))).toBe(true);
  expect(isDisconnect(new TypeError("x is undefined"))).toBe(false);
  expect(readableError(new TypeError("Failed to fetch")).message).toMatch(/cannot be reached/);
  expect(readableError(new Error("As it is.")).message).toBe("As it is.");
});

it("an age is told in few letters", () => {
  const now = Date.parse("2026-01-02T12:00:00Z");
  const told = (time: string) => age(time, now);
  expect(told("2026-01-02T11:59:30Z")).toBe("now");
  expect(told("2026-01-02T12:00:10Z")).toBe("now"); // the server's clock may be ahead
  expect(told("2026-01-02T11:15:00Z")).toBe("45 min");
  expect(told("2026-01-02T03:00:00Z")).toBe("9 h");
  expect(told("2025-12-30T03:00:00Z")).toBe("3 d");
});

it("a model without live mode has none when it is asked again, but may chat; an output that does not fit never will", () => {
  const noLive = new ChatRefusedError("This agent's model has no live mode.", "no-live-mode");
  expect([mayRetry(noLive, "live"), mayRetry(noLive, "chat")]).toEqual([false, true]);
  const wrong = new Error(JSON.stringify({ error: { code: "output-does-not-fit", message: "It does not fit." } }));
  expect([mayRetry(wrong, "chat"), mayRetry(new Error("x"), "live"), mayRetry(undefined, "live")]).toEqual([
    ...[false, true, true],
  ]);
});
