import { expect, test } from "vitest";
import { highlight } from "./highlight.ts";

test("the pieces of highlighted code are the code", async () => {
  const code = `<a href="x" onclick='y'>&amp; & < > "</a>\n<!-- <b> -->`;
  const pieces = await highlight(code, "html");
  expect(pieces?.map(({ text }) => text).join("")).toBe(code);
  expect(pieces?.some(({ scope }) => scope === "hljs-comment")).toBe(true);
});

test("every language that is offered can be loaded", async () => {
  for (const language of ["bash", "css", "js", "json", "py", "sql", "ts", "html", "yml"])
    expect(await highlight("a = 1 # b", language), language).toBeDefined();
});

test("code in other languages, or too long, stays plain", async () => {
  expect(await highlight("x", "brainfuck")).toBeUndefined();
  expect(await highlight("x", "constructor")).toBeUndefined();
  expect(await highlight("x", "")).toBeUndefined();
  expect(await highlight("1 ".repeat(20_000), "json")).toBeUndefined();
});
