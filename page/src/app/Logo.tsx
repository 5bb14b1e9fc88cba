/** Three lines on the wire, in the hues of tools, reasoning and approvals. */
export function Logo() {
  return (
    <svg viewBox="0 0 16 16" width="16" height="16" fill="none" strokeWidth="2.4" strokeLinecap="round" aria-hidden>
      <path className="stroke-tool" d="M1.5 3.5h13" />
      <path className="stroke-reasoning" d="M1.5 8h8" />
      <path className="stroke-approval" d="M1.5 12.5h13" />
    </svg>
  );
}
