import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { browserTool, BrowserToolList, toolForPeople } from "./index.ts";

afterEach(() => {
  cleanup();
  document.head.replaceChildren();
});

function tell(tools: unknown): void {
  const meta = document.createElement("meta");
  meta.name = "adk-browser-tools";
  meta.content = tools === undefined ? "" : JSON.stringify(tools);
  document.head.replaceChildren(meta);
}

test("only the tools of the agent are listed, and those that the page does not know ask a person", async () => {
  tell([{ name: "change_bgm" }, { name: "measure_room", description: "Measure a wall.", output: null }]);
  render(<BrowserToolList />);
  await screen.findByText("allowed");
  expect(screen.getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([
    "change_bgmallowed",
    "measure_roomasks you",
  ]);
});

test.each([[[]], [undefined]])("an agent without browser tools has no list: %j", (tools) => {
  tell(tools);
  render(<BrowserToolList />);
  expect(screen.queryByRole("heading")).toBeNull();
});

test("a tool of the server with the name of one of the page's is not run here", () => {
  tell([{ name: "change_bgm" }]);
  expect([browserTool("change_bgm") !== undefined, browserTool("get_location")]).toEqual([true, undefined]);
  expect([toolForPeople("get_location"), toolForPeople("change_bgm")]).toEqual([undefined, undefined]);
});

test("where the server does not tell, the page runs what it knows, and asks nobody", () => {
  tell(undefined);
  expect(browserTool("get_location")).toBeDefined();
  expect(browserTool("constructor")).toBeUndefined();
  expect(toolForPeople("measure_room")).toBeUndefined();
});
