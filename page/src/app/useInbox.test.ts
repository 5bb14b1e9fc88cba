import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ChatsApi, type InboxEntry } from "./api.ts";
import { useInbox } from "./useInbox.ts";

const entry = (id: string, askedAt: string, more: Partial<InboxEntry> = {}): InboxEntry => {
  return { id, user: "ann", tool: "pay", arguments: {}, digest: `d-${id}`, askedAt, status: "pending", ...more };
};
const OLD = entry("old", "2026-01-01T12:00:00.000Z");
const NEW = entry("new", "2026-01-01T12:00:01.000Z");

let asked: string[];
let bodies: unknown[];
let answers: (path: string) => Response | Promise<Response>;

beforeEach(() => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  [asked, bodies] = [[], []];
  answers = () => Response.json({ approvals: [NEW, OLD], cursor: null });
  vi.stubGlobal("fetch", async (input: string, init: RequestInit) => {
    const path = input.replace("https://example.test/api/chat", "");
    asked.push(`${init.method} ${path}`);
    if (typeof init.body === "string") bodies.push(JSON.parse(init.body));
    return answers(path);
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const api = new ChatsApi("https://example.test/api/chat");
const open = (isOpen = true) => renderHook(({ isOpen }) => useInbox(api, isOpen), { initialProps: { isOpen } });
const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

it("asks at once, every five seconds while it is open, and more rarely else", async () => {
  const { result, rerender } = open(false);
  await pass(0);
  expect([result.current.count, result.current.isLoaded, asked.length]).toEqual([2, true, 1]);
  await pass(14_000);
  expect(asked).toHaveLength(1);
  await pass(1_000);
  expect(asked).toHaveLength(2);
  rerender({ isOpen: true });
  await pass(10_000);
  expect(asked).toHaveLength(5); // when it was opened, and twice
});

it("does not ask while nobody looks at the page, and asks when somebody does", async () => {
  open();
  await pass(0);
  const visible = vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  await pass(20_000);
  expect(asked).toHaveLength(1);
  visible.mockReturnValue("visible");
  document.dispatchEvent(new Event("visibilitychange"));
  await pass(0);
  expect(asked).toHaveLength(2);
});

it("sends a decision with the digest, shows what is recorded, and asks again", async () => {
  const { result } = open();
  await pass(0);
  const recorded = { ...NEW, status: "denied", by: "max" };
  answers = (path) => Response.json(path === "/approvals/new" ? recorded : { approvals: [OLD], cursor: null });
  await act(() => result.current.decide("new", { approved: false, digest: "d-new", reason: "no" }));
  expect(asked.slice(1)).toEqual(["POST /approvals/new", "GET /approvals"]);
  expect(bodies).toEqual([{ approved: false, digest: "d-new", reason: "no" }]);
  expect(result.current.items).toEqual([
    { entry: recorded, state: "decided" },
    { entry: OLD, state: "waiting" },
  ]);
  expect(result.current.count).toBe(1);
});

it("does not believe an answer that is older than the decision", async () => {
  const { result } = open();
  await pass(0);
  let tell = (_: Response) => {};
  answers = () => new Promise<Response>((resolve) => (tell = resolve));
  await pass(5_000);
  answers = (path) => Response.json(path === "/approvals/new" ? { ...NEW, status: "approved" } : { approvals: [], cursor: null });
  await act(() => result.current.decide("new", { approved: true, digest: "d-new" }));
  tell(Response.json({ approvals: [NEW, OLD], cursor: null }));
  await pass(0);
  expect(result.current.items.map(({ state }) => state)).toEqual(["decided", "gone"]);
});

it("says why a decision was refused, and what is asked now", async () => {
  const { result } = open();
  await pass(0);
  const changed = { ...NEW, digest: "other" };
  answers = (path) => {
    if (path !== "/approvals") return new Response("{}", { status: 409 });
    return Response.json({ approvals: [changed, OLD], cursor: null });
  };
  await act(() => result.current.decide("new", { approved: true, digest: "d-new" }));
  expect(result.current.items[0]).toMatchObject({ entry: changed, state: "waiting" });
  expect(result.current.items[0]!.problem).toMatch(/has changed/);
});

it("shows more when asked, and keeps it when it refreshes", async () => {
  answers = (path) =>
    Response.json(path === "/approvals" ? { approvals: [NEW], cursor: "7" } : { approvals: [OLD], cursor: null });
  const { result } = open();
  await pass(0);
  expect([result.current.items.length, result.current.hasMore]).toEqual([1, true]);
  await act(async () => result.current.showMore());
  await pass(5_000);
  expect(asked.slice(1)).toEqual(["GET /approvals", "GET /approvals?cursor=7", "GET /approvals", "GET /approvals?cursor=7"]);
  expect([result.current.items.length, result.current.hasMore]).toEqual([2, false]);
});

it("keeps what it has while the server cannot be reached, and says so", async () => {
  const { result } = open();
  await pass(0);
  answers = () => Promise.reject(new TypeError("Failed to fetch"));
  await pass(5_000);
  expect([result.current.count, result.current.isStale]).toEqual([2, true]);
});

it("forgets what was decided when it is left", async () => {
  const { result, rerender } = open();
  await pass(0);
  answers = (path) => Response.json(path === "/approvals/new" ? { ...NEW, status: "approved" } : { approvals: [], cursor: null });
  await act(() => result.current.decide("new", { approved: true, digest: "d-new" }));
  rerender({ isOpen: false });
  await pass(0);
  expect(result.current.items).toEqual([]);
});
