/** The marks of a time axis, on round times of the user's zone. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 30].map((count) => count * DAY),
];

export interface Tick {
  at: number;
  label: string;
}

export function ticksOf(from: number, to: number, most: number, offsetMs = zoneOffset(from)): Tick[] {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? STEPS.at(-1) ?? DAY;
  const first = Math.ceil((from + offsetMs) / step) * step - offsetMs;
  const ticks: Tick[] = [];
  for (let at = first; at <= to; at += step) ticks.push({ at, label: labelOf(at, step) });
  return ticks;
}

/** How far the zone is ahead of UTC then. */
function zoneOffset(at: number): number {
  return -new Date(at).getTimezoneOffset() * MINUTE;
}

const formats = {
  fraction: new Intl.DateTimeFormat(undefined, {
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 1,
  }),
  second: new Intl.DateTimeFormat(undefined, {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
  }),
  minute: new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
  hour: new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
  day: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" }),
};

function labelOf(at: number, step: number): string {
  if (step < SECOND) return formats.fraction.format(at);
  if (step < MINUTE) return formats.second.format(at);
  if (step < HOUR) return formats.minute.format(at);
  return step < DAY ? formats.hour.format(at) : formats.day.format(at);
}
