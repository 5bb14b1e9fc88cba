import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import { artifacts, sessionState } from "./session.ts";

const message = (...parts: object[]) => ({ id: "m", role: "assistant", parts }) as UIMessage;
const state = (data: unknown) => ({ type: "data-adk-state", data });
const saved = (filename: unknown, version: unknown) => ({ type: "data-adk-artifact", data: { filename, version } });
const file = (url: string) => ({ type: "file", url, mediaType: "text/plain" });

test("the state is what the changes have made of it, each key with the message that changed it last", () => {
  const messages = [message(state({ a: 1, b: { x: [] } })), message({ type: "text", text: "x" }, state({ a: null }), state({ c: "" }))];
  expect(sessionState(messages)).toEqual([
    { key: "a", value: null, message: 2 },
    { key: "b", value: { x: [] }, message: 1 },
    { key: "c", value: "", message: 2 },
  ]);
  expect(sessionState([message(state(null), state([1]), { type: "data-adk-node", data: { a: 1 } })])).toEqual([]);
});

test("artifacts have their versions, the newest first, and where each can be had", () => {
  const messages = [
    message(saved("a.txt", 0), file("/files/a.txt?version=0"), saved("b.txt", 0)),
    message(saved("a.txt", 1), saved("a.txt", 2), file("/files/a.txt?version=2"), saved(3, "x"), saved("b.txt", 0)),
  ];
  const version = (number: number, url: string | undefined, place: number) => ({
    version: number,
    url,
    mediaType: url && "text/plain",
    message: place,
  });
  expect(artifacts(messages)).toEqual([
    {
      filename: "a.txt",
      versions: [
        version(2, "/files/a.txt?version=2", 2),
        version(1, undefined, 2),
        version(0, "/files/a.txt?version=0", 1),
      ],
    },
    { filename: "b.txt", versions: [version(0, undefined, 2)] },
  ]);
});
