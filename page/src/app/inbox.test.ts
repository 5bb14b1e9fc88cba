import { describe, expect, it } from "vitest";
import { type InboxEntry, RequestRefused } from "./api.ts";
import { type InboxItem, withOutcome, withoutProblem, withPage, withProblem } from "./inbox.ts";

/** The number is its age: 9 is the newest. */
const entry = (id: number, more: Partial<InboxEntry> = {}): InboxEntry => ({
  id: String(id),
  user: "ann",
  tool: "pay",
  arguments: {},
  digest: `d${id}`,
  askedAt: `2026-01-01T12:00:0${id}.000Z`,
  status: "pending",
  ...more,
});
const page = (approvals: InboxEntry[], cursor: string | null = null) => ({ approvals, cursor });
const waiting = (...ids: number[]) => withPage([], page(ids.map((id) => entry(id))));
const states = (items: InboxItem[]) => items.map(({ entry: { id }, state }) => `${id} ${state}`);

describe("what the server tells", () => {
  it("is shown newest first", () => {
    expect(states(waiting(1, 3, 2))).toEqual(["3 waiting", "2 waiting", "1 waiting"]);
  });

  it("leaves what was decided here, and says of the rest that it does not wait any more", () => {
    const shown = withOutcome(waiting(3, 2, 1), entry(3, { status: "approved" }));
    expect(states(withPage(shown, page([entry(4), entry(1)])))).toEqual([
      "4 waiting",
      "3 decided",
      "2 gone",
      "1 waiting",
    ]);
  });

  it("says nothing of what may be on a later page", () => {
    expect(states(withPage(waiting(3, 2, 1), page([entry(4), entry(3), entry(2)], "next")))).toEqual([
      "4 waiting",
      "3 waiting",
      "2 waiting",
    ]);
  });

  it("asks again for what was decided and has changed since", () => {
    const shown = withOutcome(waiting(1), entry(1));
    const [again] = withPage(shown, page([entry(1, { digest: "other" })]));
    expect(again).toEqual({ entry: entry(1, { digest: "other" }), state: "waiting" });
  });
});

describe("a decision that was refused", () => {
  const refused = (status: number, text = "{}") => withProblem(waiting(1), "1", new RequestRefused(text, status))[0]!;

  it.each([
    [409, "waiting", /has changed/],
    [422, "waiting", /does not take these changes/],
    [404, "gone", /does not wait for you any more/],
  ] as const)("with %d leaves it %s, and says why in plain words", (status, state, words) => {
    expect(refused(status).state).toBe(state);
    expect(refused(status).problem).toMatch(words);
  });

  it("for another reason says what the server says", () => {
    expect(refused(429, '{"error": {"message": "Too many."}}').problem).toBe("Too many.");
    expect(withProblem(waiting(1), "1", new TypeError("Failed to fetch"))[0]!.problem).toMatch(/cannot be reached/);
  });

  it("says so until the next one, also when what is asked has changed", () => {
    const shown = withProblem(waiting(1), "1", new RequestRefused("{}", 409));
    const [changed] = withPage(shown, page([entry(1, { digest: "other" })]));
    expect(changed!.problem).toMatch(/has changed/);
    expect(withoutProblem([changed!], "1")[0]!.problem).toBeUndefined();
  });
});
