/** How far a chain of approvers is. It moves by itself. */
import { Ban, Check, Circle, Hourglass, type LucideIcon } from "lucide-react";
import { approverWords, type ChainLink } from "./about-approval.ts";
import { clockTime, useSecondsLeft } from "./clock.ts";
import { Marked } from "./Marked.tsx";

type View = { icon: LucideIcon; hue: string; words(link: ChainLink): string };

const VIEWS: Record<string, View> = {
  approved: { icon: Check, hue: "text-ok", words: ({ by }) => `${by ?? "somebody"} approved` },
  denied: { icon: Ban, hue: "text-error", words: ({ by }) => `${by ?? "somebody"} denied` },
  waiting: { icon: Hourglass, hue: "text-approval", words: ({ approvers }) => `waits for ${approverWords(approvers)}` },
  expired: { icon: Ban, hue: "text-error", words: ({ approvers }) => `no answer of ${approverWords(approvers)} in time` },
};
const LATER: View = { icon: Circle, hue: "text-ink-2", words: ({ approvers }) => `then ${approverWords(approvers)}` };
const NEVER: View = { ...LATER, words: ({ approvers }) => `${approverWords(approvers)}: not asked` };

interface ChainProgressProps {
  chain: ChainLink[];
  /** Of the whole: "pending" as long as somebody is to decide. */
  status: string | undefined;
  /** Of the link whose turn it is. */
  deadline?: string;
}

export function ChainProgress({ chain, status, deadline }: ChainProgressProps) {
  const isOpen = status === "pending";
  const secondsLeft = useSecondsLeft(isOpen ? deadline : undefined);
  return (
    <ol aria-label="Who decides" className="grid gap-1 text-sm">
      {chain.map((link, index) => {
        const { icon: Icon, hue, words } = VIEWS[link.status] ?? (isOpen ? LATER : NEVER);
        return (
          <li key={index} className="flex items-baseline gap-2">
            <Icon size={14} aria-hidden className={`shrink-0 translate-y-0.5 ${hue}`} />
            <span className="min-w-0">
              <bdi>
                <Marked text={words(link)} />
              </bdi>
              {link.reason !== undefined && (
                <bdi className="text-ink-2">
                  : <Marked text={link.reason} />
                </bdi>
              )}
              {link.status === "waiting" && secondsLeft !== undefined && secondsLeft > 0 && (
                <span role="timer" aria-live="off" className="ml-2 font-mono text-approval">
                  <span className="sr-only">Time left: </span>
                  {clockTime(secondsLeft)}
                </span>
              )}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
