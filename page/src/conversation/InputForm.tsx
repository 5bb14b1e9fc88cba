/** What a person answers in a form: a question of the agent's, or the output of a browser tool that this page lacks. */
import { type FormEvent, useMemo, useState } from "react";
import { isRecord } from "../is-record.ts";
import { toolForPeople } from "../tools/index.ts";
import { useActions } from "./actions.ts";
import { AnswerCard, useAnswering } from "./AnswerCard.tsx";
import { Button } from "./Button.tsx";
import { FormField } from "./FormField.tsx";
import { InvisibleWarning, Marked } from "./Marked.tsx";
import { REQUEST_INPUT, type ToolPart } from "./parts.ts";
import { fieldsOf, initialText, valueOf } from "./schema-fields.ts";
import { Values } from "./Values.tsx";
import { humanise } from "./words.ts";

interface Question {
  message: string;
  about: string;
  /** Shown above the fields. */
  given: unknown;
  /** Of the answer. Without one, the answer is text, or nothing. */
  schema: unknown;
  /** A tool may fail; a question must be answered. */
  mayFail: boolean;
}

export function InputForm({ id, tool, hasFailed }: { id: string; tool: ToolPart; hasFailed: boolean }) {
  const { onToolOutput } = useActions();
  const answering = useAnswering(hasFailed);
  const { message, about, given, schema, mayFail } = useMemo(() => questionOf(tool), [tool.toolName, tool.input]);
  const { fields, isObject } = useMemo(() => fieldsOf(schema), [schema]);
  const isFree = mayFail && schema === undefined;
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [errors, setErrors] = useState<Record<string, string>>({});
  const call = { toolName: tool.toolName, toolCallId: tool.toolCallId };

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const values: Record<string, unknown> = {};
    const wrong: Record<string, string> = {};
    for (const field of fields) {
      try {
        const value = valueOf({ ...field, isRequired: field.isRequired && !isFree }, textOf(field.name));
        if (value !== undefined) values[field.name] = value;
      } catch (error) {
        wrong[field.name] = (error as Error).message;
      }
    }
    setErrors(wrong);
    if (Object.keys(wrong).length > 0 || answering.isSent) return;
    answering.markSent();
    onToolOutput({ ...call, output: isObject ? values : (values[""] ?? null) });
  };
  const decline = () => {
    answering.markSent();
    onToolOutput({ ...call, errorText: "The user has declined to answer." });
  };
  const textOf = (name: string) => texts[name] ?? initialText(fields.find((field) => field.name === name)!);

  return (
    <AnswerCard
      id={id}
      label={`${tool.toolName}: ${message}`}
      answering={answering}
      question={
        <>
          <h3 className="font-semibold whitespace-pre-wrap">
            <Marked text={message} />
          </h3>
          {about !== "" && (
            <p className="whitespace-pre-wrap text-ink-2">
              <Marked text={about} />
            </p>
          )}
          <InvisibleWarning shown={[tool.toolName, about, tool.input]} />
          {given != null && <Values value={given} />}
        </>
      }
    >
      <form noValidate onSubmit={submit} className="grid justify-items-start gap-3">
        {fields.map((field) => (
          <FormField
            key={field.name}
            id={`${id}-${field.name}`}
            field={isFree ? { ...field, isRequired: false } : field}
            text={textOf(field.name)}
            error={errors[field.name]}
            onChange={(text) => setTexts((before) => ({ ...before, [field.name]: text }))}
          />
        ))}
        <div className="flex flex-wrap gap-2">
          <Button kind="main" type="submit">
            Answer
          </Button>
          {mayFail && <Button onClick={decline}>Decline</Button>}
        </div>
      </form>
    </AnswerCard>
  );
}

function questionOf(tool: ToolPart): Question {
  const input = isRecord(tool.input) ? tool.input : {};
  if (tool.toolName === REQUEST_INPUT) {
    const asked = typeof input.message === "string" && input.message !== "" ? input.message : undefined;
    const schema = input.response_schema ?? input.responseSchema;
    return { message: asked ?? "The agent needs an answer", about: "", given: input.payload, schema, mayFail: false };
  }
  const known = toolForPeople(tool.toolName);
  return {
    message: humanise(tool.toolName),
    about: known?.description ?? "",
    given: Object.keys(input).length === 0 ? undefined : input,
    schema: known?.output,
    mayFail: true,
  };
}
