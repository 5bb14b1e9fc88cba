import { act, fireEvent, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { assistant, asked, button, call, card, press, show, words } from "./testing.tsx";

const NOW = new Date("2026-01-01T12:00:00Z");
const IN_A_MINUTE = "2026-01-01T12:01:00.000Z";
const GONE = "2026-01-01T11:59:59.000Z";

describe("what it says", () => {
  test("a sentence, the arguments and the tool", () => {
    show([assistant(...asked())]);
    expect(within(card()).getByRole("heading", { level: 3 }).textContent).toBe(
      "Process payment of 50 USD to Hanako needs your go-ahead",
    );
    expect([...card().querySelectorAll("dt")].map((name) => name.textContent)).toEqual([
      "amount",
      "recipient",
      "currency",
    ]);
    expect([...card().querySelectorAll("dd")].map((value) => value.textContent)).toEqual(["50", "Hanako", "USD"]);
    expect(card().textContent).toContain("process_payment");
  });

  test("the hint, the application's card and the chain, if they are there", () => {
    const fields = [{ label: "Team", value: "4711" }];
    const chain = [
      { approvers: ["eva"], status: "approved", by: "eva" },
      { approvers: ["me"], status: "waiting" },
    ];
    show([
      assistant(
        ...asked({
          hint: "Large sum!",
          card: { title: "Payment", severity: "high", fields },
          status: "pending",
          chain,
        }),
      ),
    ]);
    expect(within(card()).getByRole("heading", { level: 3 }).textContent).toBe("Payment needs your go-ahead");
    for (const part of ["Process payment of 50 USD to Hanako", "Large sum!", "Severity: high", "Team4711", "amount50"])
      expect(card().textContent).toContain(part);
    expect(within(card()).getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([
      "eva approved",
      "waits for me",
    ]);
  });

  test("the hint that ADK writes for programs is not shown to people", () => {
    show([
      assistant(
        ...asked({ hint: "Please approve or reject the tool call x() by responding with a FunctionResponse ..." }),
      ),
    ]);
    expect(card().textContent).not.toContain("FunctionResponse");
  });

  test("what came with the approval itself, from version 7 on", () => {
    show([
      assistant(call("approval-requested", { approval: { id: "approval-1", descriptor: { hint: "Large sum!" } } })),
    ]);
    expect(card().textContent).toContain("Large sum!");
  });

  test("a call without arguments, in the browser", () => {
    show([
      assistant({
        type: "tool-get_location",
        toolCallId: "c",
        state: "approval-requested",
        input: {},
        approval: { id: "a" },
      }),
    ]);
    expect(words()).toContain("Get location needs your go-ahead");
    expect(words()).toContain("runs in this browser");
  });

  test("nonsense of the server's does no harm", () => {
    show([
      assistant(
        ...asked(
          { hint: 5, deadline: "soon", chain: [1, { approvers: 2 }], card: { fields: [3, {}], icon: 4 }, edits: [] },
          { input: undefined },
        ),
      ),
    ]);
    expect(card().textContent).toContain("needs your go-ahead");
    expect(screen.queryByRole("timer")).toBeNull();
  });

  test("an integer that no JavaScript number can hold is told in all its digits", () => {
    show([assistant(...asked({}, { input: { amount: "9007199254740993", recipient: "Bob" } }))]);
    expect(within(card()).getByRole("heading", { level: 3 }).textContent).toContain("of 9007199254740993 to Bob");
    expect(card().querySelector("dd")?.textContent).toBe("9007199254740993");
  });
});

describe("characters that are not seen", () => {
  const ANYWHERE = [
    ["in a value", {}, { input: { recipient: "eve\u200b" } }],
    ["in a value further down", {}, { input: { to: [{ name: "eve\u200b" }] } }],
    ["in the name of an argument", {}, { input: { "recipient\u200b": "eve" } }],
    ["in the tool's name", {}, { type: "tool-process_payment: \u200b" }],
    ["in the hint", { hint: "Pay eve\u200b?" }, {}],
    ["in the severity", { card: { severity: "low\u200b" } }, {}],
    ["in the title", { card: { title: "Pay\u200b" } }, {}],
    ["in the label of a field", { card: { fields: [{ label: "team\u200b", value: 1 }] } }, {}],
    ["in the code of a field", { card: { fields: [{ label: "team", value: "a\u200b", format: "code" }] } }, {}],
    ["in an address that is no link", { card: { link: "javascript:\u200b" } }, {}],
    ["in a reason of the chain", { chain: [{ approvers: [], status: "approved", reason: "ok\u200b" }] }, {}],
  ] as const;
  test.each(ANYWHERE)("%s are marked, and the card warns", (_, about, more) => {
    const { container } = show([assistant(...asked(about, more))]);
    expect(container.innerHTML).not.toContain("\u200b");
    expect(within(card()).getAllByRole("img", { name: "invisible character U+200B" }).length).toBeGreaterThan(0);
    expect(within(card()).getAllByTitle("Invisible character U+200B")[0]?.textContent).toBe("U+200B");
    expect(within(card()).getByText("Contains invisible characters")).toBeDefined();
  });

  test("are told by number also where a name is read aloud", () => {
    show([assistant(...asked({}, { input: { amount: 5, recipient: "\u202eeve" } }))]);
    expect(card().getAttribute("aria-label")).toBe(
      "process_payment: Process payment of 5 to [U+202E]eve needs your go-ahead",
    );
    expect(button(/^Approve Process payment of 5 to \[U\+202E\]eve/)).toBeDefined();
    expect(within(card()).getByRole("heading", { level: 3 }).textContent).toBe(
      "Process payment of 5 to U+202Eeve needs your go-ahead",
    );
  });

  test("in what the tool is told are escapes of JSON, and are sent as they came", () => {
    const payload = { seat: "\u202e1A" };
    const { onDecide } = show([assistant(...asked({ payload }))]);
    expect(screen.getByRole<HTMLTextAreaElement>("textbox", { name: /JSON/ }).value).toContain('"\\u202e1A"');
    expect(within(card()).getByText("Contains invisible characters")).toBeDefined();
    press(/^Approve /);
    expect(onDecide.mock.calls[0]![0].payload).toEqual(payload);
  });

  test("are not there: no warning", () => {
    show([assistant(...asked({ hint: "Large sum! 👩‍👧" }))]);
    expect(words()).not.toContain("invisible");
  });
});

describe("the deadline", () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: NOW });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("counts down, for all cards with one timer, without being read aloud", () => {
    const second = call("approval-requested", { toolCallId: "call-2", approval: { id: "approval-2" } });
    const about = { type: "data-adk-approval", id: "approval-2", data: { deadline: "2026-01-01T13:00:05.000Z" } };
    show([assistant(...asked({ deadline: IN_A_MINUTE }), second, about)]);
    expect(vi.getTimerCount()).toBe(1);
    expect(screen.getAllByRole("timer").map((timer) => timer.textContent)).toEqual([
      "Time left: 1:00",
      "Time left: 1:00:05",
    ]);
    act(() => vi.advanceTimersByTime(1_000));
    expect(screen.getAllByRole("timer").map((timer) => timer.textContent)).toEqual([
      "Time left: 0:59",
      "Time left: 1:00:04",
    ]);
    expect(screen.getAllByRole("timer")[0]?.getAttribute("aria-live")).toBe("off");
  });

  test("is never further away than it was when the server asked, whenever in a second that was", () => {
    for (const ms of [500, 1_700]) {
      act(() => vi.advanceTimersByTime(ms)); // the second card comes while the first one counts down
      const { container } = show([assistant(...asked({ deadline: new Date(Date.now() + 600_000).toISOString() }))]);
      expect(container.querySelector("[role=timer]")?.textContent).toBe("Time left: 10:00");
    }
  });

  test("takes the decision away when it passes, and says so", () => {
    const { onDecide } = show([assistant(...asked({ deadline: IN_A_MINUTE }))]);
    expect(button(/^Approve /).disabled).toBe(false);
    act(() => vi.advanceTimersByTime(60_000));
    expect(button(/^Approve /).disabled).toBe(true);
    expect(button(/^Deny /).disabled).toBe(true);
    fireEvent.keyDown(card(), { key: "a" });
    fireEvent.keyDown(card(), { key: "d" });
    expect(card().textContent).toContain("expired");
    expect(onDecide).not.toHaveBeenCalled();
  });

  test("has not passed in its last second", () => {
    show([assistant(...asked({ deadline: "2026-01-01T12:00:01.900Z" }))]);
    act(() => vi.advanceTimersByTime(1_000));
    expect(button(/^Approve /).disabled).toBe(false);
    act(() => vi.advanceTimersByTime(1_000));
    expect(button(/^Approve /).disabled).toBe(true);
  });

  test("lets the agent be told that it has passed", () => {
    const { onDecide } = show([assistant(...asked({ deadline: GONE }))]);
    press("Tell the agent");
    expect(onDecide.mock.calls).toEqual([
      [{ approvalId: "approval-1", toolCallId: "call-1", approved: false, reason: "Nobody answered in time." }],
    ]);
    expect(card().textContent).toContain("Answer sent");
  });

  test("no longer counts when the answer is sent", () => {
    show([assistant(...asked({ deadline: IN_A_MINUTE }))]);
    press(/^Approve /);
    act(() => vi.advanceTimersByTime(120_000));
    expect(card().textContent).toContain("Answer sent");
    expect(vi.getTimerCount()).toBe(0);
  });
});
