/** The fields of a form for a JSON schema. What does not fit into a flat form is asked for as JSON. */
import { isRecord } from "../is-record.ts";

export interface Field {
  /** The name of the property; empty where the answer is a single value. */
  name: string;
  label: string;
  description: string | undefined;
  kind: "text" | "number" | "integer" | "boolean" | "choice" | "json";
  choices: unknown[];
  isRequired: boolean;
  initial: unknown;
}

type Schema = Record<string, unknown>;

export function fieldsOf(schema: unknown): { fields: Field[]; isObject: boolean } {
  const root = isRecord(schema) ? resolved(schema, schema) : {};
  if (!isRecord(schema) || root.type !== "object") return { fields: [field("", root, true)], isObject: false };
  if (!isRecord(root.properties) || Object.keys(root.properties).length === 0)
    return { fields: [{ ...field("", {}, true), kind: "json" }], isObject: false };
  const required = Array.isArray(root.required) ? root.required : [];
  const fields = Object.entries(root.properties).map(([name, property]) =>
    field(name, isRecord(property) ? resolved(property, schema) : {}, required.includes(name)),
  );
  return { fields, isObject: true };
}

function field(name: string, schema: Schema, isRequired: boolean): Field {
  return {
    name,
    label: typeof schema.title === "string" ? schema.title : name || "Your answer",
    description: typeof schema.description === "string" ? schema.description : undefined,
    kind: kindOf(schema),
    choices: Array.isArray(schema.enum) ? schema.enum : [],
    isRequired,
    initial: schema.default,
  };
}

function kindOf(schema: Schema): Field["kind"] {
  if (Array.isArray(schema.enum)) return "choice";
  switch (schema.type) {
    case "string":
    case undefined: // anything is allowed, so text is
      return "text";
    case "number":
    case "integer":
    case "boolean":
      return schema.type;
    default:
      return "json";
  }
}

/** Pydantic writes `X | None` as a choice of two, and enums as references. */
function resolved(schema: Schema, root: Schema, depth = 0): Schema {
  if (depth > 5) return {};
  const name = typeof schema.$ref === "string" ? /^#\/\$defs\/([^/]+)$/.exec(schema.$ref)?.[1] : undefined;
  const target = name !== undefined && isRecord(root.$defs) ? root.$defs[name] : undefined;
  if (isRecord(target)) return resolved({ ...target, ...without(schema, "$ref") }, root, depth + 1);
  if (!Array.isArray(schema.anyOf)) return schema;
  const others = schema.anyOf.filter((option) => isRecord(option) && option.type !== "null");
  if (others.length !== 1 || !isRecord(others[0])) return { ...without(schema, "anyOf"), type: "any" };
  return resolved({ ...others[0], ...without(schema, "anyOf") }, root, depth + 1);
}

function without(schema: Schema, name: string): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== name));
}

/** What stands in a field when the form is opened. */
export function initialText({ kind, initial }: Field): string {
  if (initial === undefined || initial === null) return kind === "boolean" ? "false" : "";
  return kind === "text" || kind === "number" || kind === "integer" ? String(initial) : JSON.stringify(initial);
}

/** The value that the text of a field stands for; undefined for an optional field left empty. Throws what is wrong. */
export function valueOf(field: Field, text: string): unknown {
  if (text === "" && !field.isRequired) return undefined;
  switch (field.kind) {
    case "text":
      if (text === "") throw new Error("Please fill this in.");
      return text;
    case "number":
    case "integer": {
      const value = text.trim() === "" ? Number.NaN : Number(text);
      if (!Number.isFinite(value)) throw new Error("This must be a number.");
      if (field.kind === "integer" && !Number.isInteger(value)) throw new Error("This must be a whole number.");
      if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new Error("This number is too large here.");
      return value;
    }
    default:
      if (text === "") throw new Error(field.kind === "choice" ? "Please choose." : "Please fill this in.");
      try {
        return JSON.parse(text);
      } catch {
        throw new Error("This is not JSON yet.");
      }
  }
}
