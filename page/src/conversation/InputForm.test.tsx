import { fireEvent, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { assistant, fill, press, show, words } from "./testing.tsx";

function question(input: object): object {
  return { type: "tool-adk_request_input", toolCallId: "q", state: "input-available", input };
}

function answered(output: unknown) {
  return [[{ toolName: "adk_request_input", toolCallId: "q", output }]];
}

test("a question without a schema is answered in words", () => {
  const { onToolOutput } = show([assistant(question({ message: "Which city?", response_schema: null }))]);
  expect(screen.getByRole("heading", { name: "Which city?" })).toBeDefined();
  fill("Your answer", "Tokyo");
  press("Answer");
  expect(onToolOutput.mock.calls).toEqual(answered("Tokyo"));
  expect(words()).toContain("Answer sent");
  expect(screen.queryByRole("button", { name: "Answer" })).toBeNull();
});

test("an object becomes a field for each property", () => {
  const schema = {
    type: "object",
    required: ["name", "kind", "nights"],
    properties: {
      name: { type: "string", title: "Name", description: "As in the passport" },
      nights: { type: "integer", default: 2 },
      price: { type: "number" },
      breakfast: { type: "boolean" },
      kind: { $ref: "#/$defs/Kind" },
      note: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
      guests: { type: "array" },
    },
    $defs: { Kind: { enum: ["single", 2], type: "string" } },
  };
  const { onToolOutput } = show([assistant(question({ response_schema: schema }))]);
  expect(words()).toContain("As in the passport");
  fill("Name", "Hanako");
  fill("price (optional)", "12.5");
  fireEvent.click(screen.getByRole("checkbox", { name: "breakfast" }));
  fireEvent.change(screen.getByRole("combobox", { name: "kind" }), { target: { value: "2" } });
  fill("note (optional)", "late");
  fill("guests (JSON) (optional)", '["a"]');
  press("Answer");
  expect(onToolOutput.mock.calls).toEqual(
    answered({ name: "Hanako", nights: 2, price: 12.5, breakfast: true, kind: 2, note: "late", guests: ["a"] }),
  );
});

test("an answer that does not fit is not sent, and each field says why", () => {
  const properties = {
    name: { type: "string" },
    nights: { type: "integer" },
    price: { type: "number" },
    kind: { enum: ["a"] },
    list: { type: "array" },
  };
  const { onToolOutput } = show([
    assistant(question({ response_schema: { type: "object", properties, required: Object.keys(properties) } })),
  ]);
  fill("nights", "1.5");
  fill("price", "dear");
  fill("list (JSON)", "[");
  press("Answer");
  expect(onToolOutput).not.toHaveBeenCalled();
  for (const reason of [
    "Please fill this in.",
    "This must be a whole number.",
    "This must be a number.",
    "Please choose.",
    "This is not JSON yet.",
  ])
    expect(words()).toContain(reason);
  expect(screen.getByRole("textbox", { name: "name" }).getAttribute("aria-invalid")).toBe("true");
});

test.each([
  [{ type: "integer" }, "7", 7],
  [{ type: "object" }, '{"a":1}', { a: 1 }],
  [{ type: "array", items: {} }, "[1]", [1]],
  [{ anyOf: [{ type: "string" }, { type: "integer" }] }, '"x"', "x"],
  [{ $ref: "#/$defs/None" }, "words", "words"],
])("a schema that is no object with properties has one field: %j", (schema, text, expected) => {
  const { onToolOutput } = show([assistant(question({ response_schema: schema }))]);
  fill(/^Your answer/, text);
  press("Answer");
  expect(onToolOutput.mock.calls).toEqual(answered(expected));
});

test("a schema that refers to itself makes a form all the same", () => {
  show([assistant(question({ response_schema: { $ref: "#/$defs/A", $defs: { A: { $ref: "#/$defs/A" } } } }))]);
  expect(screen.getByRole("button", { name: "Answer" })).toBeDefined();
});

test("characters that are not seen are marked in all that the form says", () => {
  const properties = {
    "ci\u200bty": { type: "string", description: "Which\u200b" },
    open: { type: "boolean", title: "Op\u200ben" },
    kind: { enum: ["a\u200b"] },
  };
  const schema = { type: "object", properties };
  const input = { message: "Wh\u200bere?", payload: { "near\u200b": 1 }, response_schema: schema };
  const { container } = show([assistant(question(input))]);
  const shown = container.innerHTML.replaceAll(/ (value|id|for|aria-describedby)="[^"]*"/g, "");
  expect(shown).not.toContain("\u200b");
  expect(screen.getAllByRole("img", { name: "invisible character U+200B" })).toHaveLength(5);
  expect(screen.getByRole("option", { name: "a[U+200B]" })).toBeDefined();
  expect(screen.getByText("Contains invisible characters")).toBeDefined();
});

test("a form without such characters does not warn", () => {
  show([assistant(question({ message: "Which city?" }))]);
  expect(words()).not.toContain("invisible");
});

test("what was handed along with the question is shown", () => {
  show([assistant(question({ message: "Right?", payload: { city: "Tokyo" } }))]);
  expect(words()).toContain("cityTokyo");
});

test("the answer of somebody else takes the place of the form", () => {
  const { update } = show([assistant(question({ message: "Which city?" }))]);
  update([assistant({ ...question({ message: "Which city?" }), state: "output-available", output: "Kyoto" })]);
  expect(screen.queryByRole("button", { name: "Answer" })).toBeNull();
  expect(words()).toContain("Completed");
});

/** A call of a browser tool that the page does not know, with what the server tells about it. */
function unknownTool(output: unknown, input: object = { wall: "north" }): object {
  const meta = document.createElement("meta");
  meta.name = "adk-browser-tools";
  meta.content = JSON.stringify([{ name: "measure_room", description: "Measure a wall.", output }]);
  document.head.replaceChildren(meta);
  return { type: "tool-measure_room", toolCallId: "c", state: "input-available", input };
}

const SIZE = { type: "object", properties: { metres: { type: "number" } }, required: ["metres"] };

test("a browser tool that the page does not know is a form for its output, with its arguments", () => {
  const { onToolOutput } = show([assistant(unknownTool(SIZE))]);
  expect(screen.getByRole("heading", { name: "Measure room" })).toBeDefined();
  expect(words()).toContain("Measure a wall.");
  expect(words()).toContain("north");
  press("Answer");
  expect(onToolOutput).not.toHaveBeenCalled();
  fill("metres", "4.5");
  press("Answer");
  const call = { toolName: "measure_room", toolCallId: "c" };
  expect(onToolOutput.mock.calls).toEqual([[{ ...call, output: { metres: 4.5 } }]]);
});

test.each([
  ["", null],
  ["all of it", "all of it"],
])("without a schema its output is text, or nothing: %j", (written, output) => {
  const { onToolOutput } = show([assistant(unknownTool(null))]);
  fill(/Your answer/, written);
  press("Answer");
  expect(onToolOutput.mock.calls).toEqual([[{ toolName: "measure_room", toolCallId: "c", output }]]);
});

test("a person may decline it, which the agent reads as an error", () => {
  const { onToolOutput } = show([assistant(unknownTool(SIZE))]);
  press("Decline");
  expect(onToolOutput.mock.calls).toEqual([
    [{ toolName: "measure_room", toolCallId: "c", errorText: "The user has declined to answer." }],
  ]);
  expect(words()).toContain("Answer sent");
});

test("a question of the agent's cannot be declined, and calls of other tools are no forms", () => {
  document.head.replaceChildren();
  show([assistant(question({ message: "Which city?" }), { ...unknownTool(SIZE), type: "tool-get_weather" })]);
  expect(screen.queryByRole("button", { name: "Decline" })).toBeNull();
  expect(screen.getAllByRole("button", { name: "Answer" })).toHaveLength(1);
});
