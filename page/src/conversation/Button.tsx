import type { ButtonHTMLAttributes } from "react";

export function Button({
  kind = "plain",
  ...props
}: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: "main" | "plain" | "quiet" }) {
  const look = {
    main: "bg-ink text-paper hover:opacity-90",
    plain: "border border-line-strong bg-card text-ink hover:bg-paper-2",
    quiet: "text-ink underline-offset-2 underline",
  }[kind];
  return (
    <button
      type="button"
      {...props}
      className={`inline-flex min-h-9 items-center gap-2 rounded-md px-3.5 font-medium disabled:opacity-50 ${look}`}
    />
  );
}
