import { fireEvent, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { TrailLine } from "./actions.ts";
import { linesOf } from "./AuditTrail.tsx";
import { assistant, asked, call, card, show } from "./testing.tsx";

const KEY: [string, string] = ["inv-1", "call-1"];
const line = (state: string, more: Partial<TrailLine> = {}): TrailLine => {
  return { at: 1_767_268_800, call: KEY, tool: "process_payment", digest: "0123456789", state, ...more };
};
const TRAIL: TrailLine[] = [
  line("in-chain", { approval_id: "approval-1", approvers: [["group:managers", "mia"], ["eva"]] }),
  line("pending", { call: ["inv-2", "call-1"], approval_id: "approval-2" }),
  line("in-chain", { by: "max", approved: true, link: 0, reason: "fine\u200b" }),
  line("approved", { by: "eva", approved: true, link: 1, shown_digest: "abcdef0123", replaces: "0123456789", payload: { amount: 3 } }),
  line("claimed", { by: "secret-token", approved: true }),
  line("done", { by: "secret-token", approved: true }),
];

async function open(): Promise<string[]> {
  const details = within(card()).getByText("Audit trail").closest("details")!;
  details.open = true;
  fireEvent(details, new Event("toggle"));
  await within(card()).findByText(/^asked/);
  return [...details.querySelectorAll("li > div")].map(({ textContent }) => textContent!.replaceAll(/\s+/g, " ").trim());
}

test("tells what was asked, decided and run of this call, and of no other", async () => {
  const about = { toolCallId: "call-1", status: "approved", chain: [] };
  const { readTrail } = show([
    assistant(call("output-available", { output: {} }), { type: "data-adk-approval", id: "approval-1", data: about }),
  ]);
  readTrail.mockResolvedValue(TRAIL);
  expect(readTrail).not.toHaveBeenCalled();
  expect(await open()).toEqual([
    "asked one of managers, or mia, then eva 01234567",
    "max approved (link 1): fineU+200B 01234567",
    "eva approved (link 2) abcdef01 instead of 01234567amount3",
    "taken up by a run 01234567",
    "the tool has finished 01234567",
  ]);
  expect(card().textContent).not.toContain("secret");
});

test("is behind every card of an approval, and behind no other", () => {
  const { update } = show([assistant(...asked())]);
  expect(within(card()).getByText("Audit trail")).toBeDefined();
  update([assistant(call("output-available", { output: {} }))]);
  expect(screen.queryByText("Audit trail")).toBeNull();
});

test("says when it cannot be read", async () => {
  const { readTrail } = show([assistant(...asked())]);
  readTrail.mockRejectedValue(new Error());
  const details = within(card()).getByText("Audit trail").closest("details")!;
  details.open = true;
  fireEvent(details, new Event("toggle"));
  expect(await within(card()).findByText("The trail could not be read.")).toBeDefined();
});

test("a denial, a deadline and a policy have words of their own", async () => {
  const { readTrail } = show([assistant(...asked())]);
  const words = async (...lines: TrailLine[]) => {
    readTrail.mockResolvedValue([line("pending", { approval_id: "approval-1" }), ...lines]);
    return (await open()).slice(1).map((text) => text.replace(" 01234567", ""));
  };
  expect(await words(line("denied", { by: "ann", approved: false, reason: "no" }))).toEqual(["ann denied: no"]);
  expect(linesOf(TRAIL, "approval-9")).toEqual([]);
});
