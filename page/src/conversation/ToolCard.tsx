/** One call of a tool: its state, its arguments, and its result. */
import { Ban, Check, ChevronRight, CircleAlert, Hourglass, LoaderCircle, Send } from "lucide-react";
import { browserTool } from "../tools/index.ts";
import type { AboutApproval } from "./about-approval.ts";
import { useActions } from "./actions.ts";
import { ApprovalCard } from "./ApprovalCard.tsx";
import { AuditTrail } from "./AuditTrail.tsx";
import { ChainProgress } from "./ChainProgress.tsx";
import { InputForm } from "./InputForm.tsx";
import { isRecord } from "../is-record.ts";
import { isForm, type ToolPart } from "./parts.ts";
import { visible } from "./invisible.ts";
import { InvisibleWarning, Marked } from "./Marked.tsx";
import { CardBody } from "./RichCard.tsx";
import { Values } from "./Values.tsx";
import { inOneLine } from "./words.ts";

export interface ToolCardProps {
  id: string;
  tool: ToolPart;
  about: AboutApproval;
  /** The message of this call is still being streamed. */
  isStreaming: boolean;
  hasFailed: boolean;
  /** It runs again when the user has given consent. */
  needsConsent?: boolean;
}

type View = { words: string; icon: typeof Check; hue: string; spins?: boolean };

export function ToolCard({ id, tool, about, isStreaming, hasFailed, needsConsent = false }: ToolCardProps) {
  const { onDecide } = useActions();
  const trail = about.id !== undefined && <AuditTrail approvalId={about.id} />;
  if (tool.state === "approval-requested" && tool.approval !== undefined) {
    const asked = { approvalId: tool.approval.id, tool, about, hasFailed, onDecide };
    return <ApprovalCard id={id} {...asked} more={trail} />;
  }
  if (isForm(tool)) return <InputForm id={id} tool={tool} hasFailed={hasFailed} />;
  const view = decidedByOthers(tool, about) ?? viewOf(tool, isStreaming, needsConsent);
  const outcome = outcomeOf(tool);
  const Icon = view.icon;
  return (
    <div
      id={id}
      role="group"
      tabIndex={-1}
      aria-label={`${visible(tool.toolName)}: ${view.words}`}
      className="rounded-xl border border-line bg-card"
    >
      <details className="group">
        <summary className="flex list-none items-center gap-2.5 rounded-xl px-3 py-2.5">
          <Icon size={16} aria-hidden className={`shrink-0 ${view.hue} ${view.spins ? "animate-spin" : ""}`} />
          <span className="truncate font-mono text-sm font-semibold sm:shrink-0">
            <Marked text={tool.toolName} />
          </span>
          <bdi className="min-w-0 truncate max-sm:hidden font-mono text-xs text-ink-2">
            <Marked text={inOneLine(tool.input)} />
          </bdi>
          <span className={`ml-auto shrink-0 text-sm ${view.hue}`}>{view.words}</span>
          <ChevronRight size={16} aria-hidden className="shrink-0 text-ink-2 group-open:rotate-90" />
        </summary>
        <div className="grid gap-3 border-t border-line px-3 py-3 text-sm">
          <Section title="Arguments" value={tool.input} />
          {tool.output !== undefined && <Section title="Result" value={tool.output} />}
          {about.card !== undefined && <CardBody card={about.card} />}
          {trail}
        </div>
      </details>
      {about.chain !== undefined && (
        <div className="grid gap-2 border-t border-line px-3 py-2">
          <InvisibleWarning shown={about.chain} />
          <ChainProgress chain={about.chain} status={about.status} deadline={about.deadline} />
        </div>
      )}
      {outcome !== undefined && (
        <p className="border-t border-line px-3 py-2 text-sm whitespace-pre-wrap">
          <Marked text={outcome} />
        </p>
      )}
    </div>
  );
}

function Section({ title, value }: { title: string; value: unknown }) {
  const isEmpty = value === undefined || (isRecord(value) && Object.keys(value).length === 0);
  return (
    <div>
      <h3 className="mb-1 text-xs font-medium text-ink-2">{title}</h3>
      {isEmpty ? <p className="text-ink-2">none</p> : <Values value={value} />}
    </div>
  );
}

/** How the server says that the model took a call back. */
const WITHDRAWN = "This call was not run: the model withdrew it";

/** Where others than the chat's owner decide. He has no buttons, but sees how far they are. */
function decidedByOthers(tool: ToolPart, { chain, status }: AboutApproval): View | undefined {
  if (chain === undefined || tool.state === "output-available") return undefined;
  if (status === "pending") return { words: "Waits for others", icon: Hourglass, hue: "text-approval" };
  if (status === "denied") return { words: "Denied", icon: Ban, hue: "text-approval" };
  return status === "expired" ? { words: "Expired", icon: Ban, hue: "text-approval" } : undefined;
}

function viewOf(tool: ToolPart, isStreaming: boolean, needsConsent: boolean): View {
  switch (tool.state) {
    case "input-streaming":
      if (!isStreaming) return { words: "Not finished", icon: Hourglass, hue: "text-ink-2" };
      return { words: "Reading arguments", icon: LoaderCircle, hue: "text-tool", spins: true };
    case "input-available":
      return {
        words: browserTool(tool.toolName) ? "Running in this browser" : "Running",
        icon: LoaderCircle,
        hue: "text-tool",
        spins: true,
      };
    case "approval-requested":
      return { words: "Waits for you", icon: Hourglass, hue: "text-approval" };
    case "approval-responded":
      return { words: "Answer sent", icon: Send, hue: "text-approval" };
    case "output-available":
      if (tool.isPreliminary && needsConsent)
        return { words: "Waits for your consent", icon: Hourglass, hue: "text-approval" };
      if (tool.isPreliminary) return { words: "Working", icon: LoaderCircle, hue: "text-tool", spins: isStreaming };
      return { words: "Completed", icon: Check, hue: "text-ok" };
    case "output-denied":
      return { words: "Denied", icon: Ban, hue: "text-approval" };
    case "output-error":
      if (tool.errorText?.startsWith(WITHDRAWN)) return { words: "Withdrawn", icon: Ban, hue: "text-ink-2" };
      return { words: "Failed", icon: CircleAlert, hue: "text-error" };
    default:
      return { words: tool.state, icon: Hourglass, hue: "text-ink-2" };
  }
}

/** What everybody wants to know, shown without opening the card. */
function outcomeOf(tool: ToolPart): string | undefined {
  const { approval, output } = tool;
  if (tool.state === "output-error") return tool.errorText ?? "The tool has failed.";
  if (tool.state === "output-denied")
    return approval?.reason ? `This was denied: ${approval.reason}` : "This was denied.";
  if (tool.state !== "output-available" || !isRecord(output)) return undefined;
  const currency = typeof output.currency === "string" ? ` ${output.currency}` : "";
  const balance = typeof output.balance === "number" ? `New balance: ${output.balance}${currency}` : "";
  const message = typeof output.message === "string" ? output.message : "";
  return [message, balance].filter(Boolean).join(" ") || undefined;
}
