/** A question of the agent's (`adk_request_input`), as a form for the answer that it wants. */
import { type FormEvent, useMemo, useState } from "react";
import { useActions } from "./actions.ts";
import { AnswerCard, useAnswering } from "./AnswerCard.tsx";
import { Button } from "./Button.tsx";
import { FormField } from "./FormField.tsx";
import { isRecord } from "../is-record.ts";
import { InvisibleWarning, Marked } from "./Marked.tsx";
import type { ToolPart } from "./parts.ts";
import { fieldsOf, initialText, valueOf } from "./schema-fields.ts";
import { Values } from "./Values.tsx";

export function InputForm({ id, tool, hasFailed }: { id: string; tool: ToolPart; hasFailed: boolean }) {
  const { onToolOutput } = useActions();
  const answering = useAnswering(hasFailed);
  const input = isRecord(tool.input) ? tool.input : {};
  const { fields, isObject } = useMemo(() => fieldsOf(input.response_schema ?? input.responseSchema), [tool.input]);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [errors, setErrors] = useState<Record<string, string>>({});

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const values: Record<string, unknown> = {};
    const wrong: Record<string, string> = {};
    for (const field of fields) {
      try {
        const value = valueOf(field, texts[field.name] ?? initialText(field));
        if (value !== undefined) values[field.name] = value;
      } catch (error) {
        wrong[field.name] = (error as Error).message;
      }
    }
    setErrors(wrong);
    if (Object.keys(wrong).length > 0 || answering.isSent) return;
    answering.markSent();
    onToolOutput({ toolName: tool.toolName, toolCallId: tool.toolCallId, output: isObject ? values : values[""] });
  };

  const message =
    typeof input.message === "string" && input.message !== "" ? input.message : "The agent needs an answer";
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
          <InvisibleWarning shown={tool.input} />
          {input.payload != null && <Values value={input.payload} />}
        </>
      }
    >
      <form noValidate onSubmit={submit} className="grid justify-items-start gap-3">
        {fields.map((field) => (
          <FormField
            key={field.name}
            id={`${id}-${field.name}`}
            field={field}
            text={texts[field.name] ?? initialText(field)}
            error={errors[field.name]}
            onChange={(text) => setTexts((before) => ({ ...before, [field.name]: text }))}
          />
        ))}
        <Button kind="main" type="submit">
          Answer
        </Button>
      </form>
    </AnswerCard>
  );
}
