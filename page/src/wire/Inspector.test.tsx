import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import type { UIMessage } from "ai";
import { Profiler } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Inspector } from "./Inspector.tsx";
import { PartTicks } from "./PartTicks.tsx";
import type { Picked } from "./rows.ts";
import { WireLog } from "./log.ts";
import { tappedFetch } from "./taps.ts";

const CHUNKS = [
  { type: "start", messageId: "m2" },
  { type: "text-start", id: "t1" },
  ...["Hello", " there", ", all"].map((delta) => ({ type: "text-delta", id: "t1", delta })),
  { type: "text-end", id: "t1" },
  { type: "tool-input-available", toolCallId: "c1", toolName: "pay", input: { amount: 3 } },
  { type: "tool-approval-request", approvalId: "a1", toolCallId: "c1" },
  { type: "finish" },
];
const ASK = { id: "chat-1", trigger: "submit-message", messages: [{ id: "m1", role: "user", parts: [] }] };
const MESSAGES = [
  { id: "m1", role: "user", parts: [{ type: "text", text: "Pay" }] },
  { id: "m2", role: "assistant", parts: [{ type: "text", text: "Hello there, all" }] },
] as UIMessage[];

afterEach(() => {
  cleanup();
  sessionStorage.clear();
  vi.unstubAllGlobals();
});

async function ask(log: WireLog, chunks: object[] = CHUNKS): Promise<void> {
  const events = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
  const headers = { "content-type": "text/event-stream" };
  vi.stubGlobal("fetch", async () => new Response(`${events}data: [DONE]\n\n`, { headers }));
  await (await tappedFetch(log)("/api/chat", { method: "POST", body: JSON.stringify(ASK) })).text();
}

function show(log: WireLog, picked?: Picked) {
  const onPick = vi.fn();
  const onClose = vi.fn();
  render(<Inspector log={log} messages={MESSAGES} picked={picked} onPick={onPick} onClose={onClose} />);
  return { onPick, onClose };
}

// Not by their roles, which takes seconds where there are hundreds of them.
const lines = () => [...document.querySelectorAll("ol > li")].map((line) => line.querySelector(".font-medium")?.textContent);

describe("the inspector", () => {
  it("lists every chunk, with repeated deltas as one line and their text", async () => {
    const log = new WireLog();
    await ask(log);
    show(log);
    expect(lines()).toEqual([
      ...["POST", "200", "start", "text-start", "text-delta", "text-end"],
      ...["tool-input-available", "tool-approval-request", "finish", "[DONE]"],
    ]);
    const deltas = screen.getByRole("button", { name: /text-delta/ });
    expect(deltas.textContent).toContain("Hello there, all");
    expect(deltas.textContent).toContain("×3");
    expect(deltas.textContent).toMatch(/^\+\d+/);
    expect(screen.getByRole("button", { name: /POST/ }).textContent).toMatch(/^sent/);
  });

  it("shows what a line holds when it is clicked", async () => {
    const log = new WireLog();
    await ask(log);
    show(log);
    const line = screen.getByRole("button", { name: /tool-input-available/ });
    fireEvent.click(line);
    expect(line.getAttribute("aria-expanded")).toBe("true");
    expect(screen.getByText(/"amount": 3/)).toBeTruthy();
    fireEvent.click(line);
    expect(screen.queryByText(/"amount": 3/)).toBeNull();
  });

  it("filters by family, and counts each", async () => {
    const log = new WireLog();
    await ask(log);
    show(log);
    const families = within(screen.getByRole("group", { name: "Families" }));
    expect(families.getAllByRole("button").map((button) => button.textContent)).toEqual([
      ...["Frames 5", "Text 5", "Tools 1", "Approval 1"],
    ]);
    fireEvent.click(families.getByRole("button", { name: "Approval 1" }));
    expect(lines()).toEqual(["tool-approval-request"]);
    fireEvent.click(families.getByRole("button", { name: "Tools 1" }));
    expect(lines()).toEqual(["tool-input-available", "tool-approval-request"]);
    fireEvent.click(families.getByRole("button", { name: "Approval 1" }));
    fireEvent.click(families.getByRole("button", { name: "Tools 1" }));
    expect(lines()).toHaveLength(10);
  });

  it("grows while it is open", async () => {
    const log = new WireLog();
    show(log);
    expect(screen.getByText("Nothing has gone over the wire yet.")).toBeTruthy();
    await ask(log);
    expect(await screen.findByRole("button", { name: /text-delta/ })).toBeTruthy();
  });

  it("shows the chunks of the part that was picked", async () => {
    const log = new WireLog();
    await ask(log);
    const { onPick } = show(log, { messageId: "m2", partKey: "tool:c1" });
    expect(lines()).toEqual(["tool-input-available", "tool-approval-request"]);
    fireEvent.click(screen.getByRole("button", { name: "Show all" }));
    expect(onPick).toHaveBeenCalledWith(undefined);
  });

  it("shows a part that was told again as it was told last", async () => {
    const log = new WireLog();
    await ask(log);
    await (await tappedFetch(log)("/api/chat/chat-1/stream")).text();
    show(log, { messageId: "m2", partKey: "text:0" });
    expect(lines()).toEqual(["text-start", "text-delta", "text-end"]);
  });

  it("shows the message, the request and the raw lines under their tabs, by keyboard too", async () => {
    const log = new WireLog();
    await ask(log);
    const { onClose } = show(log);
    const chunks = screen.getByRole("tab", { name: "Chunks" });
    fireEvent.keyDown(chunks, { key: "ArrowRight" });
    const trace = screen.getByRole("tab", { name: "Trace" });
    expect(document.activeElement).toBe(trace);
    expect(trace.getAttribute("aria-selected")).toBe("true");
    const panel = () => screen.getByRole("tabpanel").textContent;
    expect(screen.getByRole("combobox", { name: "Turn to show" }).textContent).toBe("2. Pay");
    expect(panel()).toMatch(/first chunk.*Hello there, all/);
    fireEvent.click(screen.getByRole("tab", { name: "State" }));
    expect(panel()).toContain("No state was sent to this page.");
    fireEvent.click(screen.getByRole("tab", { name: "Artifacts" }));
    expect(panel()).toContain("The agent has saved no artifact in this chat.");
    fireEvent.click(screen.getByRole("tab", { name: "Message" }));
    expect(panel()).toContain('"text": "Hello there, all"');
    fireEvent.change(screen.getByRole("combobox", { name: "Message to show" }), { target: { value: "m1" } });
    expect(panel()).toContain('"text": "Pay"');
    fireEvent.click(screen.getByRole("tab", { name: "Request" }));
    expect(panel()).toContain('"trigger": "submit-message"');
    fireEvent.click(screen.getByRole("tab", { name: "Raw" }));
    expect(panel()).toContain('→ POST /api/chat\n{"id":"chat-1"');
    expect(panel()).toContain('← data: {"type":"text-delta","id":"t1","delta":"Hello"}');
    fireEvent.click(screen.getByRole("button", { name: "Close the inspector" }));
    expect(onClose).toHaveBeenCalledTimes(1);
    cleanup();
    show(log);
    expect(screen.getByRole("tab", { name: "Raw", selected: true })).toBeTruthy();
  });

  it("draws the newest lines of many, and earlier ones when asked", async () => {
    const log = new WireLog();
    const many = Array.from({ length: 400 }, (_, place) => ({ type: "data-x", id: String(place), data: {} }));
    await ask(log, many);
    show(log);
    expect(lines()).toHaveLength(300);
    fireEvent.click(screen.getByText("Show earlier ones (103)"));
    expect(lines()).toHaveLength(403);
  });

  it("does not write out a file", async () => {
    const log = new WireLog();
    await ask(log, [{ type: "file", mediaType: "image/png", url: `data:image/png;base64,${"A".repeat(100_000)}` }]);
    show(log);
    fireEvent.click(screen.getByRole("button", { name: /^\+\d+\s*file/ }));
    expect(screen.getByText(/100,022 characters/)).toBeTruthy();
    fireEvent.click(screen.getByRole("tab", { name: "Raw" }));
    expect(screen.getByRole("tabpanel").textContent!.length).toBeLessThan(5_000);
  });

  it("downloads the recording", async () => {
    const log = new WireLog();
    await ask(log);
    let file: Blob | undefined;
    vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => {
      file = blob as Blob;
      return "blob:x";
    });
    const name = vi.fn();
    vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (this: HTMLAnchorElement) {
      name(this.download);
    });
    show(log);
    fireEvent.click(screen.getByRole("button", { name: "Download recording" }));
    expect(name).toHaveBeenCalledWith(expect.stringMatching(/^chat-[\dT-]+\.jsonl$/));
    expect((await file!.text()).split("\n")).toHaveLength(log.entries().length + 1);
  });
});

describe("the ticks beside a part", () => {
  it("grow with its chunks, and open them", async () => {
    const log = new WireLog();
    const onPick = vi.fn();
    const { container } = render(<PartTicks log={log} messageId="m2" partKey="text:0" onPick={onPick} />);
    expect(container.textContent).toBe("");
    expect(screen.queryByRole("button")).toBeNull();
    await ask(log);
    const ticks = await screen.findByRole("button", { name: "5 chunks built this part: show" });
    expect(ticks.childElementCount).toBe(5);
    fireEvent.click(ticks);
    expect(onPick).toHaveBeenCalledWith({ messageId: "m2", partKey: "text:0" });
  });

  it("are not more than fit", async () => {
    const log = new WireLog();
    const deltas = Array.from({ length: 500 }, () => ({ type: "text-delta", id: "t1", delta: "x" }));
    await ask(log, [...CHUNKS.slice(0, 2), ...deltas]);
    render(<PartTicks log={log} messageId="m2" partKey="text:0" onPick={vi.fn()} />);
    const ticks = screen.getByRole("button", { name: "501 chunks built this part: show" });
    expect(ticks.childElementCount).toBe(60);
  });

  it("are not drawn again for the chunks of another part", async () => {
    const log = new WireLog();
    await ask(log, CHUNKS.slice(0, 2));
    const onRender = vi.fn();
    render(
      <Profiler id="ticks" onRender={onRender}>
        <PartTicks log={log} messageId="m2" partKey="text:0" onPick={vi.fn()} />
      </Profiler>,
    );
    const told = vi.fn();
    log.subscribe(told);
    await ask(log, [{ type: "start", messageId: "m3" }, { type: "text-start", id: "t1" }]);
    await vi.waitFor(() => expect(told).toHaveBeenCalled());
    expect(onRender).toHaveBeenCalledTimes(1);
  });
});
