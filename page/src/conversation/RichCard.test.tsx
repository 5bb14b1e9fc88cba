import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { assistant, asked, card, show } from "./testing.tsx";

function drawn(about: object): HTMLElement {
  show([assistant(...asked({ card: about }))]);
  return card();
}

const valueOf = (label: string) => within(card()).getByText(label).parentElement!.querySelector("dd")!;

test("fields are drawn by their formats, and what does not fit its format as it is", () => {
  drawn({
    fields: [
      { label: "Price", value: 1234.5, format: "money" },
      { label: "Odd", value: "a lot", format: "money" },
      { label: "Tiny", value: 0.001, format: "money" },
      { label: "Due", value: "2026-12-24T18:00:00Z", format: "date" },
      { label: "Never", value: "some day", format: "date" },
      { label: "Code", value: "a  b", format: "code" },
      { label: "Whole", value: { a: [1] } },
      { label: "Yes", value: true, format: "?" },
    ],
  });
  expect(valueOf("Price").textContent).toBe(new Intl.NumberFormat(undefined, { minimumFractionDigits: 2 }).format(1234.5));
  expect(valueOf("Odd").textContent).toBe("a lot");
  expect(valueOf("Tiny").textContent).toMatch(/0.001$/);
  expect(valueOf("Due").querySelector("time")!.dateTime).toBe("2026-12-24T18:00:00Z");
  expect(valueOf("Due").textContent).toContain("2026");
  expect(valueOf("Never").textContent).toBe("some day");
  expect(valueOf("Code").querySelector("code")!.textContent).toBe("a  b");
  expect(valueOf("Whole").textContent).toContain('"a"');
  expect(valueOf("Yes").textContent).toBe("true");
});

test("the arguments are shown whatever the card says", () => {
  drawn({ title: "A gift", fields: [{ label: "Amount", value: 1, format: "money" }] });
  expect(within(card()).getByText("amount").parentElement!.textContent).toBe("amount50");
  expect(card().textContent).toContain("Process payment of 50 USD to Hanako");
});

test("a link leads to a web page in a new tab, and says to which", () => {
  drawn({ link: "https://bank.example/4711" });
  const link = screen.getByRole<HTMLAnchorElement>("link", { name: /bank\.example/ });
  expect([link.href, link.target, link.rel]).toEqual(["https://bank.example/4711", "_blank", "noopener noreferrer nofollow"]);
});

test.each(["javascript:alert(1)", "mailto:eve@example", "/relative"])("%s is no link", (link) => {
  expect(drawn({ link }).textContent).toContain(link);
  expect(screen.queryByRole("link")).toBeNull();
});

test.each([
  ["money", "svg"],
  ["🏦", "span"],
])("the icon %s is drawn", (icon, element) => {
  drawn({ icon });
  expect(within(card()).getByRole("heading").querySelector(element + "[aria-hidden]")).not.toBeNull();
});

test.each(["constructor", "<b>", "x", "🏦🏦"])("the icon %s is none", (icon) => {
  drawn({ icon });
  expect(within(card()).getByRole("heading").textContent).toBe("Process payment of 50 USD to Hanako needs your go-ahead");
});

test("a colour decorates, if it is one", () => {
  const line = (container: HTMLElement) => container.querySelector<HTMLElement>(".border-l-4")?.style.borderColor;
  expect(line(drawn({ colour: "rebeccapurple", fields: [{ label: "a", value: 1 }] }))).toBe("rebeccapurple");
});

test("no colour can be anything else", () => {
  const other = drawn({ colour: "red; background: url(//evil)", fields: [{ label: "a", value: 1 }] });
  expect(other.querySelector<HTMLElement>(".border-l-4")!.getAttribute("style") ?? "").not.toContain("evil");
});
