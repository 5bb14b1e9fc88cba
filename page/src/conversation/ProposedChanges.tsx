/** What an approver may change before a call is approved: the tool says what. The arguments stay as they are. */
import { useMemo, useState } from "react";
import { isRecord } from "../is-record.ts";
import { Button } from "./Button.tsx";
import { FormField } from "./FormField.tsx";
import { editableJson, hasInvisible } from "./invisible.ts";
import { type Field, fieldsOf, initialText, valueOf } from "./schema-fields.ts";

/** What the tool is told with the approval, as the person has edited it. */
export interface Changes {
  payload: unknown;
  isValid: boolean;
}

interface ChangesProps {
  id: string;
  payload: unknown;
  /** Undefined when nothing can be changed any more. */
  onChanges: ((changes: Changes) => void) | undefined;
}

/** By the schema of what the tool takes. What is not changed is not sent. */
export function ProposedChanges(props: ChangesProps & { schema: Record<string, unknown>; input: unknown }) {
  const { id, payload, schema, input, onChanges } = props;
  const { fields, isObject } = useMemo(() => filledIn(schema, payload, input), [schema, payload, input]);
  const [isOpen, setIsOpen] = useState(payload !== undefined);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const { wrong } = read(fields, texts);

  const change = (name: string, text: string) => {
    const changed = { ...texts, [name]: text };
    setTexts(changed);
    const { values, wrong } = read(fields, changed);
    const isSame = fields.every((field) => (changed[field.name] ?? startText(field)) === startText(field));
    const proposed = isObject ? { ...(isRecord(payload) && payload), ...values } : values[""];
    onChanges?.({ payload: isSame ? payload : proposed, isValid: Object.keys(wrong).length === 0 });
  };
  if (!isOpen) {
    if (onChanges === undefined) return null;
    return (
      <p>
        <Button onClick={() => setIsOpen(true)}>Propose changes</Button>
      </p>
    );
  }
  return (
    <fieldset disabled={onChanges === undefined} className="grid gap-3">
      <legend className="mb-1 text-sm font-medium">Proposed changes</legend>
      {fields.map((field) => (
        <FormField
          key={field.name}
          id={`${id}-${field.name}`}
          field={field}
          text={texts[field.name] ?? startText(field)}
          error={field.name in texts ? wrong[field.name] : undefined}
          onChange={(text) => change(field.name, text)}
        />
      ))}
      <p className="text-sm text-ink-2">
        The tool gets this with your approval. Approvals of others who saw something else are asked for again.
      </p>
    </fieldset>
  );
}

/** With what was proposed before, else with the arguments of the same names. */
function filledIn(schema: Record<string, unknown>, payload: unknown, input: unknown) {
  const { fields, isObject } = fieldsOf(schema);
  const known = payload ?? input;
  const filled = (field: Field): Field => {
    const own = isRecord(known) && field.name in known ? known[field.name] : field.initial;
    const initial = isObject ? own : (payload ?? field.initial);
    // A field of plain text would hide them.
    return { ...field, initial, kind: hasInvisible(initial) ? "json" : field.kind };
  };
  return { isObject, fields: fields.map(filled) };
}

function startText(field: Field): string {
  return field.kind === "json" && field.initial != null ? editableJson(field.initial) : initialText(field);
}

function read(fields: Field[], texts: Record<string, string>) {
  const values: Record<string, unknown> = {};
  const wrong: Record<string, string> = {};
  for (const field of fields) {
    try {
      const value = valueOf(field, texts[field.name] ?? startText(field));
      if (value !== undefined) values[field.name] = value;
    } catch (error) {
      wrong[field.name] = (error as Error).message;
    }
  }
  return { values, wrong };
}

/** Where the tool has asked with a payload, and says nothing of its schema. */
export function PayloadField(props: ChangesProps) {
  const [text, setText] = useState(() => editableJson(props.payload));
  const [isValid, setIsValid] = useState(true);
  const change = (changed: string) => {
    setText(changed);
    let payload: unknown;
    let isJson = true;
    try {
      payload = JSON.parse(changed);
    } catch {
      isJson = false;
    }
    setIsValid(isJson);
    props.onChanges?.({ payload, isValid: isJson });
  };
  return (
    <div className="grid gap-1">
      <label htmlFor={props.id} className="text-sm font-medium">
        Sent to the tool (JSON)
      </label>
      <textarea
        id={props.id}
        value={text}
        readOnly={props.onChanges === undefined}
        rows={Math.min(10, text.split("\n").length)}
        spellCheck={false}
        aria-invalid={!isValid}
        aria-describedby={`${props.id}-note`}
        onChange={(event) => change(event.target.value)}
        className="rounded-md border border-line-strong bg-card p-2 font-mono text-sm"
      />
      <p id={`${props.id}-note`} className={`text-sm ${isValid ? "text-ink-2" : "text-error"}`}>
        {isValid
          ? "The tool gets this with your approval. The arguments above stay the same."
          : "This is not JSON yet."}
      </p>
    </div>
  );
}
