/** A card that a person has to answer: its frame, and what becomes of it when the answer is sent. */
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import { visible } from "./invisible.ts";

interface Answering {
  card: RefObject<HTMLDivElement | null>;
  isSent: boolean;
  /** The button or form that had the focus goes away with this: the card takes it. */
  markSent(): void;
}

/** `hasFailed`: the last answer did not get through, so it can be given again. */
export function useAnswering(hasFailed: boolean): Answering {
  const card = useRef<HTMLDivElement>(null);
  const [isSent, setIsSent] = useState(false);
  useEffect(() => {
    if (hasFailed) setIsSent(false);
  }, [hasFailed]);
  const markSent = () => {
    setIsSent(true);
    card.current?.focus();
  };
  return { card, isSent, markSent };
}

export interface AnswerCardProps {
  id: string;
  /** The name of the card for those who hear it. */
  label: string;
  answering: Answering;
  onKeyDown?(event: KeyboardEvent): void;
  /** What the card asks. It stays when the answer is sent. */
  question: ReactNode;
  /** What the person answers with. */
  children: ReactNode;
}

export function AnswerCard({ id, label, answering, onKeyDown, question, children }: AnswerCardProps) {
  return (
    <div
      id={id}
      role="group"
      ref={answering.card}
      tabIndex={-1}
      aria-label={visible(label)}
      onKeyDown={onKeyDown}
      className="group/card grid gap-3 rounded-xl border border-approval-line bg-approval-paper p-4"
    >
      {question}
      {answering.isSent ? (
        <p role="status" className="font-medium">
          Answer sent
        </p>
      ) : (
        children
      )}
    </div>
  );
}
