import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { ChatsApi } from "./api.ts";
import { demoUser, PersonChoice } from "./PersonChoice.tsx";

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  document.head.innerHTML = "";
  history.replaceState(null, "", "/");
});

function tell(people: string, search = "") {
  const meta = document.createElement("meta");
  Object.assign(meta, { name: "adk-people", content: people });
  document.head.append(meta);
  history.replaceState(null, "", `/${search}`);
}

it("opens the page as one of the people that the server names, at their inbox", () => {
  tell('{"max": "a manager", "eva": "an executive"}', "?user=max");
  const opened = vi.spyOn(location, "assign").mockImplementation(() => {});
  render(<PersonChoice />);
  const choice = screen.getByRole<HTMLSelectElement>("combobox", { name: "You are" });
  expect([...choice.options].map(({ text }) => text)).toEqual(["yourself", "max, a manager", "eva, an executive"]);
  expect(choice.value).toBe("max");
  fireEvent.change(choice, { target: { value: "eva" } });
  fireEvent.change(choice, { target: { value: "" } });
  expect(opened.mock.calls).toEqual([["?user=eva#approvals"], ["/"]]);
});

it.each(["", "{}", "[]"])("is no choice where the server names nobody: %j", (people) => {
  tell(people, "?user=max");
  const { container } = render(<PersonChoice />);
  expect([container.innerHTML, demoUser()]).toEqual(["", undefined]);
});

it.each(["?user=bob", "?user=constructor", "?user=", ""])("is nobody else: %s", (search) => {
  tell('{"max": "a manager"}', search);
  expect(demoUser()).toBeUndefined();
});

it("is told to the server with each request, and with the socket", () => {
  const [own, other] = [new ChatsApi("https://a.test/api"), new ChatsApi("https://a.test/api", "max")];
  expect([own.headers["x-demo-user"], own.liveUrl]).toEqual([undefined, "https://a.test/api/live"]);
  expect([other.headers["x-demo-user"], other.liveUrl]).toEqual(["max", "https://a.test/api/live?user=max"]);
});
