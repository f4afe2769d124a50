/** When a job runs, as a person would say it; an expression that has no simple words is quoted. */

import { isObject } from "./definition";

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const SHORT = new Map(WEEKDAYS.slice(0, 7).map((day, number) => [day.slice(0, 3).toLowerCase(), number]));
const ALIASES: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};
const NUMBER = /^[0-9]{1,4}$/;

export function scheduleInWords(schedule: unknown): string {
  if (typeof schedule === "string") return cronInWords(schedule);
  if (!isObject(schedule)) return "";
  const words = [
    typeof schedule.cron === "string" && cronInWords(schedule.cron),
    given(schedule.every) && `every ${periodInWords(schedule.every)}`,
    given(schedule.at) && `once at ${String(schedule.at).replace("T", " ").replace("Z", " UTC")}`,
    given(schedule.after) && `after ${severalInWords(schedule.after)}`,
    given(schedule.datasets) && `on updates of ${severalInWords(schedule.datasets)}`,
    Array.isArray(schedule.events) && `on events of ${schedule.events.map(sourceOf).join(", ")}`,
  ].filter((part) => part !== false);
  const zone = schedule.timezone;
  return words.join(" and ") + (typeof zone === "string" && zone !== "UTC" && words.length ? `, ${zone}` : "");
}

function given(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function sourceOf(rule: unknown): string {
  return isObject(rule) ? `${rule.source ?? ""} ${rule.type ?? ""}`.trim() : "";
}

/** Names in a list, or under `all` or `any`. */
function severalInWords(value: unknown): string {
  if (Array.isArray(value)) return value.join(", ");
  if (!isObject(value)) return "";
  if (Array.isArray(value.any)) return `any of ${value.any.join(", ")}`;
  return Array.isArray(value.all) ? value.all.join(", ") : "";
}

function periodInWords(value: unknown): string {
  if (typeof value !== "number") return String(value);
  if (value >= 86_400 && value % 86_400 === 0) return `${value / 86_400}d`;
  if (value >= 3_600 && value % 3_600 === 0) return `${value / 3_600}h`;
  return value >= 60 && value % 60 === 0 ? `${value / 60}m` : `${value}s`;
}

export function cronInWords(expression: string): string {
  let fields = (ALIASES[expression.trim()] ?? expression).trim().split(/\s+/);
  if (fields.length === 6 && fields[0] === "0") fields = fields.slice(1);
  if (fields.length !== 5) return expression;
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  if ([hour, day, month, weekday].every((field) => field === "*")) return minutesInWords(minute) || expression;
  const days = daysInWords(day, month, weekday);
  if (!NUMBER.test(hour) || !NUMBER.test(minute) || !days) return expression;
  return `${days} at ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
}

function minutesInWords(minute: string): string {
  if (minute === "*" || minute === "*/1") return "every minute";
  const step = minute.startsWith("*/") && NUMBER.test(minute.slice(2)) ? Number(minute.slice(2)) : 0;
  if (step && 60 % step === 0) return `every ${step} minutes`;
  return NUMBER.test(minute) ? `every hour at minute ${Number(minute)}` : "";
}

/** Empty where it takes more than a few words. */
function daysInWords(day: string, month: string, weekday: string): string {
  if (month !== "*") return "";
  if (day === "*") return weekday === "*" ? "every day" : weekdaysInWords(weekday.toLowerCase());
  if (weekday !== "*") return "";
  if (day === "L") return "on the last day of every month";
  return NUMBER.test(day) ? `on day ${Number(day)} of every month` : "";
}

function weekdaysInWords(weekday: string): string {
  const ends = weekday.split("-").map(dayOf);
  if (ends.length === 2 && ends.every(Boolean)) return `${ends[0]} to ${ends[1]}`;
  const listed = weekday.split(",").map(dayOf);
  return listed.every(Boolean) ? `every ${listed.join(" and ")}` : "";
}

function dayOf(text: string): string {
  const number = SHORT.get(text) ?? (NUMBER.test(text) ? Number(text) : -1);
  return WEEKDAYS[number] ?? "";
}
