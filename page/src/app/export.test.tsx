import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import type { UIMessage } from "ai";
import { afterEach, expect, test, vi } from "vitest";
import { asMarkdown } from "./export.ts";
import { ExportMenu } from "./ExportMenu.tsx";

afterEach(cleanup);

const assistant = (...parts: object[]) => ({ id: "a", role: "assistant", parts }) as UIMessage;
const asked = { id: "u", role: "user", parts: [{ type: "text", text: "Pay *now*" }] } as UIMessage;
const written = (...parts: object[]) => asMarkdown({ messages: [assistant(...parts)], title: "T", agent: "" });

test("a conversation as Markdown has the words as they were written, under who said them", () => {
  const messages = [asked, assistant({ type: "step-start" }, { type: "text", text: "**Done**\n" }, { type: "text", text: "" })];
  expect(asMarkdown({ messages, title: "Pay\n*now*", agent: "demo" })).toBe(
    "# Pay \\*now\\*\n\n## You\n\nPay *now*\n\n## demo\n\n**Done**\n",
  );
});

test("a call has its arguments, its result and the decision; nothing in them ends the fence", () => {
  const call = {
    type: "tool-pay_it",
    toolCallId: "c",
    state: "output-available",
    input: { note: "```\n# x" },
    output: { ok: true },
    approval: { id: "x", approved: true, reason: "fine\n# y" },
  };
  expect(written(call)).toBe(
    '# T\n\n## Agent\n\n**pay\\_it** (output-available, approved: fine \\# y)\n\n````json\n{\n  "note": "```\\n# x"\n}\n````\n\n' +
      'Result:\n\n```json\n{\n  "ok": true\n}\n```\n',
  );
  expect(written({ ...call, state: "output-error", output: undefined, errorText: "No\nmoney", approval: undefined })).toContain(
    "(output-error)\n\n````json",
  );
});

test("reasoning is quoted, files and sources are links, and files inside of the message have their names", () => {
  const text = written(
    { type: "reasoning", text: "Well\nthen" },
    { type: "file", url: "data:text/plain;base64,eA==", mediaType: "text/plain", filename: "x.txt" },
    { type: "file", url: "https://files.example/a b", mediaType: "image/png" },
    { type: "source-url", sourceId: "s", url: "https://a.example/>x", title: "A [b]" },
    { type: "data-adk-agent", data: { agent: "cook" } },
    { type: "data-adk-state", data: { secret: 1 } },
  );
  expect(text.split("\n\n").slice(2)).toEqual([
    "> Well\n> then",
    "File: x.txt",
    "File: [image/png](<https://files.example/a%20b>)",
    "Source: [A \\[b\\]](<https://a.example/%3Ex>)",
    "*cook goes on*\n",
  ]);
});

test.each([
  ["Markdown", "md", "## You"],
  ["JSON", "json", '"role": "user"'],
])("the menu saves it as %s", async (name, ending, words) => {
  const saved: { name: string; blob: Blob }[] = [];
  let blob = new Blob();
  vi.spyOn(URL, "createObjectURL").mockImplementation((made) => {
    blob = made as Blob;
    return "blob:x";
  });
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (this: HTMLAnchorElement) {
    saved.push({ name: this.download, blob });
  });
  HTMLElement.prototype.hidePopover ??= () => {};
  render(<ExportMenu messages={[asked]} title="T" agent="demo" />);
  fireEvent.click(screen.getByRole("button", { name: `Save as ${name}`, hidden: true }));
  await waitFor(() => expect(saved).toHaveLength(1));
  expect(saved[0]!.name).toMatch(new RegExp(`^chat-[\\dT-]+\\.${ending}$`));
  expect(await saved[0]!.blob.text()).toContain(words);
});
