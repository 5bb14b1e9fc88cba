const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago, in as few letters as will do. */
export function age(time: string, now = Date.now()): string {
  const passed = now - Date.parse(time);
  if (!(passed >= MINUTE)) return "now";
  if (passed < HOUR) return `${Math.floor(passed / MINUTE)} min`;
  if (passed < DAY) return `${Math.floor(passed / HOUR)} h`;
  return `${Math.floor(passed / DAY)} d`;
}
