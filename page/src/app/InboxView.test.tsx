import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { InboxEntry } from "./api.ts";
import type { InboxItem } from "./inbox.ts";
import { InboxView } from "./InboxView.tsx";
import type { Inbox } from "./useInbox.ts";

afterEach(cleanup);

const ENTRY: InboxEntry = {
  id: "adk-1",
  user: "ann",
  tool: "process_payment",
  arguments: { amount: 900, recipient: "Hanako" },
  digest: "d1",
  askedAt: new Date().toISOString(),
  status: "pending",
  hint: "Pay?",
  card: { title: "Large payment", severity: "high", fields: [{ label: "Sum", value: 900, format: "money" }] },
  chain: [
    { approvers: ["group:managers"], status: "waiting" },
    { approvers: ["eva"], status: "pending" },
  ],
};

function draw(items: InboxItem[], more: Partial<Inbox> = {}) {
  const decide = vi.fn<Inbox["decide"]>().mockResolvedValue(undefined);
  const view = (items: InboxItem[]) => {
    const count = items.filter(({ state }) => state === "waiting").length;
    const state = { items, count, hasMore: false, isLoaded: true, isStale: false, showMore: vi.fn() };
    return <InboxView inbox={{ ...state, decide, ...more }} />;
  };
  const { rerender, container } = render(view(items));
  return { decide, container, update: (changed: InboxItem[]) => rerender(view(changed)) };
}

const waiting = (more: Partial<InboxEntry> = {}): InboxItem => ({ entry: { ...ENTRY, ...more }, state: "waiting" });
const card = () => screen.getByRole("group", { name: /^process_payment/ });
const press = (name: RegExp | string) => fireEvent.click(screen.getByRole("button", { name }));

describe("what waits", () => {
  it("is shown with its card, its arguments, who asks and how far the chain is", () => {
    draw([waiting()]);
    expect(screen.getByRole("heading", { level: 2 }).textContent).toBe("ann asks, now");
    for (const words of ["Large payment", "Severity: high", "Pay?", "Sum", "recipientHanako", "process_payment"])
      expect(card().textContent).toContain(words);
    expect(within(card()).getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([
      "waits for one of managers",
      "then eva",
    ]);
    expect(screen.queryByText("Audit trail")).toBeNull(); // only the chat's owner may read it
  });

  it("is approved with the digest of what is shown", () => {
    const { decide } = draw([waiting()]);
    press(/^Approve Process payment of 900 to Hanako/);
    expect(decide.mock.calls).toEqual([["adk-1", { approved: true, digest: "d1" }]]);
    expect(card().textContent).toContain("Answer sent");
  });

  it("is denied with a reason", () => {
    const { decide } = draw([waiting()]);
    press(/^Deny/);
    fireEvent.change(screen.getByRole("textbox", { name: /reason/i }), { target: { value: "Too much" } });
    press(/^Deny/);
    expect(decide.mock.calls).toEqual([["adk-1", { approved: false, digest: "d1", reason: "Too much" }]]);
  });

  it("is approved with what the tool asks for", () => {
    const { decide } = draw([waiting({ payload: { seat: "1A" } })]);
    fireEvent.change(screen.getByRole("textbox", { name: /JSON/ }), { target: { value: '{"seat": "2B"}' } });
    press(/^Approve/);
    expect(decide.mock.calls).toEqual([["adk-1", { approved: true, digest: "d1", payload: { seat: "2B" } }]]);
  });

  it("is approved with the changes that the tool takes", () => {
    const edits = { type: "object", properties: { amount: { type: "integer" } } };
    const { decide } = draw([waiting({ edits })]);
    press("Propose changes");
    fireEvent.change(screen.getByRole("textbox", { name: /amount/ }), { target: { value: "800" } });
    press(/^Approve/);
    expect(decide.mock.calls).toEqual([["adk-1", { approved: true, digest: "d1", payload: { amount: 800 } }]]);
  });

  it("of a browser tool runs in the browser of whoever asks", () => {
    draw([waiting({ tool: "get_location", arguments: {} })]);
    expect(screen.getByRole("main").textContent).toContain("runs in the browser of ann");
  });

  it("has its invisible characters marked, wherever they are", () => {
    const chain = [{ approvers: ["m\u200bx"], status: "waiting" }];
    const { container } = draw([waiting({ user: "an\u200bn", chain, arguments: { to: "eve\u200b" } })]);
    expect(container.innerHTML).not.toContain("\u200b");
    expect(within(card()).getByText("Contains invisible characters")).toBeDefined();
  });

  it("is reached with Alt+R, and decided with the keys of its card alone", () => {
    const { decide } = draw([waiting(), waiting({ id: "adk-2", tool: "ship" })]);
    fireEvent.keyDown(document.body, { key: "a" });
    expect(decide).not.toHaveBeenCalled();
    fireEvent.keyDown(document.body, { key: "r", code: "KeyR", altKey: true });
    expect(document.activeElement).toBe(card());
    fireEvent.keyDown(card(), { key: "a" });
    expect(decide.mock.calls.map(([id]) => id)).toEqual(["adk-1"]);
  });

  it("has a deadline, after which nothing can be decided or told: the chain ends by itself", () => {
    draw([waiting({ deadline: "2026-01-01T00:00:00.000Z" })]);
    expect(card().textContent).toContain("This has expired");
    expect(screen.queryByRole("button", { name: "Tell the agent" })).toBeNull();
  });
});

describe("what has become of it", () => {
  it("is what is recorded, and has the focus that the question had", () => {
    const { update } = draw([waiting()]);
    press(/^Approve/);
    expect(document.activeElement).toBe(card());
    const chain = [{ approvers: ["group:managers"], status: "approved", by: "max" }, { approvers: ["eva"], status: "waiting" }];
    update([{ entry: { ...ENTRY, chain }, state: "decided" }]);
    expect(card().textContent).toContain("Recorded. Now it waits for eva.");
    expect(within(card()).getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual(["max approved", "waits for eva"]);
    expect(document.activeElement).toBe(card());
    expect(screen.queryByRole("button")).toBeNull();
  });

  it.each([
    ["approved", "Approved. The agent goes on."],
    ["denied", "Denied. The agent is told."],
    ["expired", "This has expired: nothing was done."],
    ["withdrawn", "The agent took this back: nothing was done."],
    ["unknown", "Recorded."],
  ])("%s", (status, words) => {
    draw([{ entry: { ...ENTRY, status }, state: "decided" }]);
    expect(card().textContent).toContain(words);
  });

  it("is not known where others have decided", () => {
    draw([{ entry: ENTRY, state: "gone" }]);
    expect(card().textContent).toContain("This does not wait for you any more");
    expect(screen.getByText("Nothing waits for you.")).toBeDefined();
  });

  it("is a problem that is said aloud, and it can be decided again", () => {
    const { decide, update } = draw([waiting()]);
    press(/^Approve/);
    update([{ ...waiting(), problem: "What is asked has changed." }]);
    expect(screen.getByRole("alert").textContent).toBe("What is asked has changed.");
    press(/^Approve/);
    expect(decide).toHaveBeenCalledTimes(2);
  });

  it("is asked anew where it has changed: nothing that was typed is about it", () => {
    const { update } = draw([waiting({ payload: { seat: "1A" } })]);
    fireEvent.change(screen.getByRole("textbox", { name: /JSON/ }), { target: { value: "{}" } });
    update([waiting({ payload: { seat: "3C" }, digest: "d2", replaces: "d1" })]);
    expect(screen.getByRole<HTMLTextAreaElement>("textbox", { name: /JSON/ }).value).toContain("3C");
    expect(card().textContent).toContain("Somebody has changed what is asked.");
  });
});

it("says what it knows", () => {
  const { container } = draw([], { isLoaded: false });
  expect(container.textContent).toContain("Looking…");
  cleanup();
  expect(draw([], { isStale: true }).container.textContent).toContain("cannot be reached");
  cleanup();
  const showMore = vi.fn();
  draw([waiting()], { hasMore: true, showMore });
  expect(screen.getByRole("main").textContent).toContain("1 or more wait for your decision.");
  press("Show more");
  expect(showMore).toHaveBeenCalledOnce();
});
