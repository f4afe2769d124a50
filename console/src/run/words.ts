/** What the API says in codes, said in words. */

const TRIGGERS: Readonly<Record<string, string>> = {
  schedule: "Schedule",
  manual: "By hand",
  backfill: "Backfill",
  event: "Event",
  dependency: "Other jobs",
  rerun: "Rerun",
};

export function triggerInWords(trigger: string): string {
  return TRIGGERS[trigger] ?? trigger;
}

const REASONS: Readonly<Record<string, string>> = {
  not_yet: "Its time has not come",
  paused: "Its job is paused",
  resuming: "Its job is being resumed",
  deleted: "Its job was deleted",
  not_in_force: "The schedule was edited",
  calendar: "The calendar is closed",
  blackout: "Held back by a blackout",
  start_deadline: "Too late to start",
  overlap: "Another run of the job is active",
  replaced: "A later fire took its place",
  concurrency: "As many runs as the job allows are active",
  pool: "Its pool is full",
  catchup: "Left out when the job caught up",
  worker: "No worker is free",
  room: "There was no room for it",
  waiting: "It waits for something outside",
  approval: "It waits for somebody's word",
  task: "Its own task left it",
  upstream: "What it needs has not succeeded",
  condition: "Its condition does not hold",
  branch: "A branch did not choose it",
  map: "Its list is not right",
  stopped: "Stopped after a failure",
  retry: "It waits for its next attempt",
  retry_budget: "Retries are held back",
  timeout: "It took too long",
  lost: "Its worker was lost",
  poison: "It could not be dealt with",
  error: "It failed",
  cancelled: "Cancelled",
  cached: "Another run's output was taken",
  collapsed: "It stands for several fires",
  partial: "In part: something failed, and was made up for",
  marked: "Somebody decided so",
};

/** Where the evidence says it all, shorter words stand before it. */
const BEFORE_DETAIL: Readonly<Record<string, string>> = {
  error: "",
  condition: "Condition",
  branch: "Branch",
  upstream: "Upstream",
  marked: "By hand",
  partial: "In part",
  retry: "Next attempt to come",
  approval: "Approval",
};

export interface Said {
  code: string;
  words: string;
  detail: string;
}

/** A reason is stored as `code` or `code: detail`. */
export function reasonParts(reason: string): Said {
  const at = reason.indexOf(": ");
  const code = at < 0 ? reason : reason.slice(0, at);
  return { code, words: REASONS[code] ?? code, detail: at < 0 ? "" : reason.slice(at + 2) };
}

/** The reason as one line; where there is evidence, that says more than the general words. */
export function reasonInWords(reason: string | null | undefined): string {
  if (!reason) return "";
  const { code, words, detail } = reasonParts(reason);
  if (!detail) return words;
  const before = BEFORE_DETAIL[code] ?? words;
  return before ? `${before}: ${detail}` : detail;
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

const LIST = new Intl.ListFormat("en", { type: "conjunction" });

/** The first few names, and how many more there are. */
export function listed(names: readonly string[], most = 5): string {
  if (names.length <= most) return LIST.format(names);
  return LIST.format([...names.slice(0, most), `${(names.length - most).toLocaleString()} more`]);
}

/** Such as 3 B, 12 KB, 4.1 MB. */
export function sized(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const [unit, size] = bytes < 1_000_000 ? ["KB", 1_000] : bytes < 1e9 ? ["MB", 1_000_000] : ["GB", 1e9];
  const value = bytes / Number(size);
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}
