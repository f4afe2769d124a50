/** Times in the user's zone, with UTC at hand; durations in words. */

const dayAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const timeOnly = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const hourOnly = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const dayOnly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });

export const zone: string = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function inFull(at: string | Date): string {
  return dayAndTime.format(new Date(at));
}

export function asTime(at: string | Date): string {
  return timeOnly.format(new Date(at));
}

/** Such as 14:00. */
export function asHour(at: string | Date): string {
  return hourOnly.format(new Date(at));
}

export function asDay(at: string | Date): string {
  return dayOnly.format(new Date(at));
}

/** Such as 2026-11-15 06:00:00 UTC. */
export function inUtc(at: string | Date): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** The time alone where it is today's, else with its day. */
export function briefly(at: string | Date, now: Date = new Date()): string {
  const then = new Date(at);
  return then.toDateString() === now.toDateString() ? timeOnly.format(then) : dayAndTime.format(then);
}

const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 365 * 86_400],
  ["month", 30 * 86_400],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

/** Such as "in 5 min." or "3 hr. ago". */
export function fromNow(at: string | Date, now: Date = new Date()): string {
  const seconds = Math.round((new Date(at).getTime() - now.getTime()) / 1000);
  const [unit, size] = STEPS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / size), unit);
}

/** Such as 350 ms, 4.2 s, 3 m 20 s, 2 h 5 m, 3 d 4 h. */
export function lasting(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3_600) return two(seconds, 60, "m", "s");
  if (seconds < 86_400) return two(Math.floor(seconds / 60), 60, "h", "m");
  return two(Math.floor(seconds / 3_600), 24, "d", "h");
}

function two(value: number, base: number, large: string, small: string): string {
  const rest = value % base;
  return `${Math.floor(value / base)} ${large}${rest ? ` ${rest} ${small}` : ""}`;
}

export function between(
  start: string | null | undefined,
  end: string | null | undefined,
  now = Date.now(),
): number | null {
  if (!start) return null;
  return (end ? Date.parse(end) : now) - Date.parse(start);
}
