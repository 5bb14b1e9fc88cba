import { visible } from "./invisible.ts";
import { Marked } from "./Marked.tsx";
import type { Field } from "./schema-fields.ts";

const LOOK = "w-full rounded-md border border-line-strong bg-card px-3 py-1.5";

export interface FormFieldProps {
  id: string;
  field: Field;
  text: string;
  error: string | undefined;
  onChange(text: string): void;
}

export function FormField(props: FormFieldProps) {
  const { id, field, error } = props;
  const isNoted = error !== undefined || field.description !== undefined;
  return (
    <div className="grid w-full gap-1">
      {field.kind === "boolean" ? (
        <label className="flex items-center gap-2 font-medium">
          <Control {...props} />
          <Marked text={field.label} />
        </label>
      ) : (
        <>
          <label htmlFor={id} className="text-sm font-medium">
            <Marked text={field.label} />
            {field.kind === "json" && " (JSON)"}
            {!field.isRequired && <span className="font-normal text-ink-2"> (optional)</span>}
          </label>
          <Control {...props} />
        </>
      )}
      {isNoted && (
        <p id={`${id}-note`} className={`text-sm ${error === undefined ? "text-ink-2" : "text-error"}`}>
          <Marked text={error ?? field.description ?? ""} />
        </p>
      )}
    </div>
  );
}

function Control({ id, field, text, error, onChange }: FormFieldProps) {
  const about = {
    id,
    "aria-invalid": error !== undefined,
    "aria-describedby": error !== undefined || field.description !== undefined ? `${id}-note` : undefined,
  };
  switch (field.kind) {
    case "boolean":
      return (
        <input
          {...about}
          type="checkbox"
          checked={text === "true"}
          onChange={(event) => onChange(String(event.target.checked))}
        />
      );
    case "choice":
      return (
        <select {...about} value={text} className={LOOK} onChange={(event) => onChange(event.target.value)}>
          <option value="">Choose…</option>
          {field.choices.map((choice) => (
            <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
              {visible(String(choice))}
            </option>
          ))}
        </select>
      );
    case "json":
      return (
        <textarea
          {...about}
          rows={4}
          spellCheck={false}
          value={text}
          className={`${LOOK} font-mono text-sm`}
          onChange={(event) => onChange(event.target.value)}
        />
      );
    default:
      return (
        <input
          {...about}
          inputMode={field.kind === "text" ? "text" : "decimal"}
          value={text}
          className={LOOK}
          onChange={(event) => onChange(event.target.value)}
        />
      );
  }
}
