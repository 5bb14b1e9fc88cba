/** A card as the application wants it: its head, its fields and its link. What the call does is shown beside it. */
import {
  Banknote,
  CircleAlert,
  File,
  Lock,
  type LucideIcon,
  Mail,
  ShieldAlert,
  SquareArrowOutUpRight,
  Trash2,
  UserRound,
} from "lucide-react";
import type { Card, CardField } from "./about-approval.ts";
import { visible } from "./invisible.ts";
import { Marked } from "./Marked.tsx";
import { webTarget } from "./safe-urls.ts";
import { Value, VALUES_LOOK } from "./Values.tsx";

/** By the names that applications may use; an emoji is drawn as it is. */
const ICONS: Record<string, LucideIcon> = {
  money: Banknote,
  file: File,
  mail: Mail,
  delete: Trash2,
  user: UserRound,
  lock: Lock,
  shield: ShieldAlert,
  warning: CircleAlert,
};
const EMOJI = /^\p{RGI_Emoji}$/v;

export function CardIcon({ icon }: { icon: string | undefined }) {
  if (icon === undefined) return null;
  const Named = Object.hasOwn(ICONS, icon) ? ICONS[icon] : undefined;
  if (Named !== undefined) return <Named size={18} aria-hidden className="mr-2 inline align-[-0.2em]" />;
  return EMOJI.test(icon) ? <span className="mr-2" aria-hidden>{icon}</span> : null;
}

/** Only to decorate: no words are written in it, since nobody knows its contrast. */
export function cardColour({ colour }: Pick<Card, "colour">): string | undefined {
  return colour !== undefined && CSS.supports("color", colour) ? colour : undefined;
}

const GRAVE = new Set(["high", "critical", "danger"]);

export function Severity({ severity }: { severity: string | undefined }) {
  if (severity === undefined) return null;
  const hue = GRAVE.has(severity.toLowerCase()) ? "border-error text-error" : "border-approval-line text-approval";
  return (
    <span className={`rounded-full border px-2 text-sm ${hue}`}>
      Severity: <Marked text={severity} />
    </span>
  );
}

export function CardBody({ card }: { card: Card }) {
  const colour = cardColour(card);
  if (card.fields.length === 0 && card.link === undefined && colour === undefined) return null;
  return (
    <div className="grid gap-2 border-l-4 border-approval-line pl-3" style={{ borderColor: colour }}>
      {card.fields.length > 0 && (
        <dl className={VALUES_LOOK}>
          {card.fields.map((field, index) => (
            <div key={index} className="contents">
              <dt className="text-ink-2">
                <Marked text={field.label} />
              </dt>
              <dd>
                <FieldValue {...field} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      {card.link !== undefined && <CardLink address={card.link} />}
    </div>
  );
}

function FieldValue({ value, format }: CardField) {
  if (format === "money" && typeof value === "number")
    return <span className="font-semibold tabular-nums">{MONEY.format(value)}</span>;
  if (format === "date" && typeof value === "string" && !Number.isNaN(Date.parse(value)))
    return <time dateTime={value}>{DATE.format(new Date(value))}</time>;
  if (format === "code" && typeof value === "string")
    return (
      <code className="font-mono text-sm whitespace-pre-wrap">
        <Marked text={value} />
      </code>
    );
  return <Value value={value} />;
}

/** No digit is rounded away. */
const MONEY = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 20 });
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function CardLink({ address }: { address: string }) {
  const target = webTarget(address);
  if (target === undefined)
    return (
      <p className="break-all text-ink-2">
        <Marked text={address} />
      </p>
    );
  return (
    <a
      href={target}
      target="_blank"
      rel="noopener noreferrer nofollow"
      className="inline-flex w-fit items-center gap-1.5 break-all underline underline-offset-2"
    >
      {visible(new URL(target).host)} <SquareArrowOutUpRight size={14} aria-hidden className="shrink-0" />
      <span className="sr-only"> (opens a new tab)</span>
    </a>
  );
}
