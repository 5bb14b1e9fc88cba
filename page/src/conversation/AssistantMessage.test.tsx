import { fireEvent, screen, within } from "@testing-library/react";
import type { UIMessage } from "ai";
import { describe, expect, test } from "vitest";
import { spokenLengths } from "./Spoken.tsx";
import { assistant, call, show, words } from "./testing.tsx";

const DOT = "data:image/png;base64,iVBORw0KGgo=";

function reasoning(text: string, state: string): object {
  return { type: "reasoning", text, state };
}

/** By its arrow: happy-dom folds a `details` also where the click was taken over. */
function isUnfolded(container: HTMLElement): boolean {
  return container.querySelector("summary .rotate-90") !== null;
}

function by(author: string, text: string): object {
  return { type: "text", text, providerMetadata: { adk: { author } } };
}

function spoken(text: string): object {
  return { type: "text", text, providerMetadata: { adk: { transcript: true } } };
}

function noted(message: UIMessage, metadata: object): UIMessage {
  return { ...message, metadata };
}

describe("answers", () => {
  test("are Markdown, with a heading for those who cannot see who speaks", () => {
    show([assistant("**Hello**")]);
    const answer = screen.getByRole("article", { name: "Agent" });
    expect(answer.querySelector("strong")?.textContent).toBe("Hello");
    expect(within(answer).getByRole("heading", { level: 2 })).toBeDefined();
  });

  test("reasoning is open while it is written and folded afterwards", () => {
    const { update, container } = show([assistant(reasoning("Hm.", "streaming"))], { status: "streaming" });
    expect(isUnfolded(container)).toBe(true);
    expect(words()).toContain("Thinking…");
    update([assistant(reasoning("Hm. Yes.", "done"), "Yes")], { status: "ready" });
    expect(isUnfolded(container)).toBe(false);
    expect(words()).toContain("Thought it through");
    fireEvent.click(screen.getByText("Thought it through"));
    expect(isUnfolded(container)).toBe(true);
  });

  test("reasoning that somebody has folded stays so while it grows", () => {
    const { update, container } = show([assistant(reasoning("Hm.", "streaming"))], { status: "streaming" });
    fireEvent.click(screen.getByText("Thinking…"));
    update([assistant(reasoning("Hm. Yes", "streaming"))], { status: "streaming" });
    expect(isUnfolded(container)).toBe(false);
  });

  test("reasoning of a turn that was stopped is no longer under way", () => {
    show([assistant(reasoning("Hm.", "streaming"))], { status: "ready" });
    expect(words()).toContain("Thought it through");
  });

  test("each part has its ticks beside it, under the key of the wire", () => {
    const source = { type: "source-url", sourceId: "s", url: "https://a.example", title: "A" };
    const file = { type: "file", mediaType: "image/png", url: DOT };
    const { container } = show([
      assistant(reasoning("Hm.", "done"), "one", call("output-available", { output: {} }), "two", file, source),
    ]);
    const ticks = [...container.querySelectorAll("[data-ticks]")].map((mark) => mark.getAttribute("data-ticks"));
    expect(ticks).toEqual(
      ["reasoning:0", "text:0", "tool:call-1", "text:1", "file:0", "source:0"].map((key) => `assistant-1 ${key}`),
    );
  });

  test("agents are named where they speak, the root agent is not", () => {
    show([
      assistant(
        "root",
        by("weather_agent", "one"),
        by("weather_agent", "two"),
        by("hotel_agent", "three"),
        "root again",
      ),
    ]);
    const groups = screen.getAllByRole("group", { name: /agent/ });
    expect(
      groups.map((group) => [group.getAttribute("aria-label"), group.querySelectorAll("[data-ticks]").length]),
    ).toEqual([
      ["Weather agent", 2],
      ["Hotel agent", 1],
    ]);
    expect(groups.map((group) => group.textContent).join()).not.toContain("root");
  });

  test("a call of another agent's is in its group", () => {
    show([assistant(call("output-available", { output: {}, callProviderMetadata: { adk: { author: "banker" } } }))]);
    expect(within(screen.getByRole("group", { name: "Banker" })).getByText("Completed")).toBeDefined();
  });

  test("sources are links, documents their titles", () => {
    show([
      assistant(
        "text",
        { type: "source-url", sourceId: "1", url: "https://a.example/x", title: "A" },
        { type: "source-url", sourceId: "2", url: "https://b.example/y" },
        { type: "source-url", sourceId: "3", url: "javascript:alert(1)", title: "C" },
        { type: "source-document", sourceId: "4", mediaType: "application/pdf", title: "D" },
      ),
    ]);
    expect(screen.getAllByRole("link").map((link) => link.textContent)).toEqual(["A", "b.example"]);
    expect(words()).toContain("D");
  });

  test("files of the chat are shown or saved, images elsewhere are links", () => {
    const { container } = show([
      assistant(
        { type: "file", mediaType: "image/png", url: "/api/chat/c/files/a%20b.png" },
        { type: "file", mediaType: "image/png", url: "https://thief.example/x.png" },
        { type: "file", mediaType: "text/html", url: "/api/chat/c/files/page.html" },
        { type: "file", mediaType: "text/html", url: "javascript:alert(1)" },
      ),
    ]);
    expect([...container.querySelectorAll("img")].map(({ alt }) => alt)).toEqual(["a b.png"]);
    const links = screen
      .getAllByRole<HTMLAnchorElement>("link")
      .map(({ textContent, download, target }) => [textContent, download, target]);
    expect(links).toEqual([
      ["x.png", "", "_blank"],
      ["page.html", "page.html", ""],
    ]);
  });

  test("consent is asked for with a link to the web, and to nothing else", () => {
    show([assistant({ type: "data-adk-auth-request", data: { authUri: "https://login.example/auth?x=1" } })]);
    const link = screen.getByRole<HTMLAnchorElement>("link", { name: /Give consent/ });
    expect([link.href, link.target, link.rel]).toEqual([
      "https://login.example/auth?x=1",
      "_blank",
      "noopener noreferrer nofollow",
    ]);
    expect(words()).toContain("login.example");
  });

  test("a call that waits for consent is not completed, and its link goes with the result", () => {
    const request = { type: "data-adk-auth-request", data: { authUri: "https://id.example/", toolCallId: "c1" } };
    const call = { type: "tool-calendar", toolCallId: "c1", state: "output-available", input: {}, output: { free: true } };
    const { update } = show([assistant({ ...call, preliminary: true }, request)]);
    expect(words()).toContain("Waits for your consent");
    expect(words()).not.toContain("Completed");
    expect(screen.queryByRole("link", { name: /Give consent/ })).not.toBeNull();
    update([assistant(call, request)]);
    expect(words()).toContain("Completed");
    expect(screen.queryByRole("link", { name: /Give consent/ })).toBeNull();
  });

  test.each(["javascript:alert(1)", "data:text/html,x", "mailto:a@b.example", "/logout", undefined, 5])(
    "no consent is asked for at %s",
    (authUri) => {
      show([assistant({ type: "data-adk-auth-request", data: { authUri } })]);
      expect(screen.queryByRole("link")).toBeNull();
    },
  );

  test("data for programs is not shown, a handover is", () => {
    show([
      assistant(
        { type: "data-adk-state", data: { secret: 1 } },
        { type: "data-other", data: "x" },
        { type: "data-adk-agent", data: { agent: "librarian" } },
      ),
    ]);
    expect(words()).toContain("Librarian goes on");
    expect(words()).not.toContain("secret");
  });

  test("a text that was replaced is folded", () => {
    const { container } = show([
      assistant({ type: "text", text: "rude", providerMetadata: { adk: { replaced: true } } }, "polite"),
    ]);
    expect(container.querySelector("details")?.open).toBe(false);
    expect(container.querySelector("details")?.textContent).toContain("rude");
  });

  test("a limit that ended the answer is told", () => {
    show([noted(assistant("So far"), { limit: "model-calls" })]);
    expect(words()).toContain("used up its steps");
  });
});

describe("voice", () => {
  const text = "Saturday looks clear. Sunday may bring rain.";

  test("what was said aloud is marked", () => {
    show([assistant(spoken(text), "written")]);
    expect(screen.getAllByRole("img", { name: "Spoken" })).toHaveLength(1);
  });

  test("an interruption is told, and what was not spoken is struck out", () => {
    const { container } = show([noted(assistant(spoken(text)), { interrupted: true })], {
      mode: "live",
      spokenShare: () => 0.4,
    });
    expect(words()).toContain("Interrupted");
    expect(container.querySelector("del")?.textContent).toBe("Not spoken:  Sunday may bring rain.");
  });

  test("a message that was whole when its voice was cut off counts as interrupted", () => {
    const { container } = show([assistant(spoken(text))], { mode: "live", spokenShare: () => 0.4 });
    expect(words()).toContain("Interrupted");
    expect(container.querySelector("del")).not.toBeNull();
  });

  test("nothing is struck out where nobody knows what was heard", () => {
    const { container } = show([noted(assistant(spoken(text)), { interrupted: true })], { mode: "live" });
    expect(words()).toContain("Interrupted");
    expect(container.querySelector("del")).toBeNull();
  });

  test("what was heard ends with a whole word", () => {
    expect(spokenLengths(["one two three", "four"], 0.3)).toEqual([7, 0]);
    expect(spokenLengths(["one", "two"], 0.5)).toEqual([3, 0]);
    expect(spokenLengths(["one", "two"], 2)).toEqual([3, 3]);
    expect(spokenLengths(["one"], -1)).toEqual([0]);
  });
});
