import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ChatsApi, type ChatSummary } from "./api.ts";
import { useChats } from "./useChats.ts";

const chat = (id: string, waiting = false): ChatSummary => ({
  id,
  title: id,
  updatedAt: "2026-01-01T00:00:00Z",
  waiting,
});
let list: ChatSummary[];

beforeEach(() => {
  list = [chat("one", true), chat("two")];
  history.replaceState(null, "", "/");
  vi.stubGlobal("fetch", async (url: string, { method }: RequestInit) => {
    if (method === "GET") return Response.json(list);
    list = list.filter(({ id }) => !url.endsWith(`/${id}`));
    return new Response(null, { status: 204 });
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const api = new ChatsApi("http://localhost/api/chat");
const chats = () => renderHook(() => useChats(api));

it("lists the chats, and opens the one that the address names", async () => {
  location.hash = "#one";
  const { result } = chats();
  expect(result.current.open).toEqual({ id: "one", isNew: false });
  await waitFor(() => expect(result.current.list).toEqual(list));
});

it("opens a new chat where the address names none, and gives it one when something was said", () => {
  const { result } = chats();
  const { id, isNew } = result.current.open;
  expect(isNew).toBe(true);
  expect(location.hash).toBe("");
  act(() => result.current.keep(id));
  expect(location.hash).toBe(`#${id}`);
  expect(result.current.open).toEqual({ id, isNew: true });
});

it("follows the address, also back", async () => {
  location.hash = "#one";
  const { result } = chats();
  act(() => {
    location.hash = "#two";
    dispatchEvent(new Event("hashchange"));
  });
  expect(result.current.open.id).toBe("two");
  act(() => result.current.startNew());
  expect(result.current.open.isNew).toBe(true);
  expect(location.hash).toBe("");
});

it("leaves a deleted chat for a new one", async () => {
  location.hash = "#one";
  const { result } = chats();
  await act(() => result.current.remove("two"));
  expect(result.current.open.id).toBe("one");
  await act(() => result.current.remove("one"));
  expect(result.current.open.isNew).toBe(true);
  await waitFor(() => expect(result.current.list).toEqual([]));
});

it("keeps the list when the server is gone, and says that a chat could not be deleted", async () => {
  const { result } = chats();
  await waitFor(() => expect(result.current.list).toHaveLength(2));
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
  act(() => result.current.refresh());
  await expect(result.current.remove("one")).rejects.toThrow("Failed to fetch");
  expect(result.current.list).toHaveLength(2);
});
