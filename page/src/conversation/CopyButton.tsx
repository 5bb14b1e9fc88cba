import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { IconButton } from "./IconButton.tsx";

const SHOWN_MS = 2_000;

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
    } catch {
      setState("failed"); // pages without https have no clipboard
    }
  };
  const shown = { idle: label, copied: "Copied", failed: "Copying is not allowed here" }[state];
  return (
    <IconButton label={shown} onClick={() => void copy()}>
      {state === "copied" ? <Check size={14} aria-hidden /> : <Copy size={14} aria-hidden />}
    </IconButton>
  );
}
