import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { AgentChoice } from "./AgentChoice.tsx";

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  document.head.innerHTML = "";
});

function tell(metas: Record<string, string>) {
  for (const [name, content] of Object.entries(metas)) {
    const meta = document.createElement("meta");
    Object.assign(meta, { name, content });
    document.head.append(meta);
  }
}

it("shows the open one of several agents, and opens the page of another", () => {
  tell({ "adk-agent": "waiter", "adk-agents": '["cook", "waiter"]' });
  const opened = vi.spyOn(location, "assign").mockImplementation(() => {});
  render(<AgentChoice />);
  const choice = screen.getByRole<HTMLSelectElement>("combobox", { name: "Agent" });
  expect([...choice.options].map(({ value }) => value)).toEqual(["cook", "waiter"]);
  expect(choice.value).toBe("waiter");
  fireEvent.change(choice, { target: { value: "cook" } });
  expect(opened).toHaveBeenCalledExactlyOnceWith("?agent=cook");
});

it.each<Record<string, string>>([{}, { "adk-agents": "" }, { "adk-agents": '["cook"]' }])("is no choice of one: %o", (metas) => {
  tell({ "adk-agent": "cook", ...metas });
  render(<AgentChoice />);
  expect(screen.queryByRole("combobox")).toBeNull();
});
