/** When each task waited and ran. */

import { hasEnded } from "../../lib/states";
import { allInstances, type Run, shownState, type Task, wholeTasks } from "../tasks";

export interface Line {
  id: string;
  label: string;
  state: string;
  depth: number;
  /** The task itself, or its instances. */
  of: readonly Task[];
  /** Whether it has instances beneath it. */
  opens: boolean;
  /** From when on nothing but a place to run was missing; null where it did not wait for one. */
  readyAt: number | null;
  attempts: number;
  /** Done in an earlier run, and taken over from there. */
  isCarried: boolean;
}

export function linesOf(began: string | null, tasks: readonly Task[], open: ReadonlySet<string>): Line[] {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const instances = allInstances(tasks);
  return wholeTasks(tasks).flatMap((task) => {
    const own = instances.get(task.id) ?? [];
    const ready = readyAt(task, byId, began);
    const line = lineOf(task, ready);
    if (own.length === 0) return [line];
    const whole = { ...line, of: own, opens: true };
    if (!open.has(task.id)) return [whole];
    const beneath = own.map((one) => ({ ...lineOf(one, ready), label: one.id.slice(task.id.length), depth: 1 }));
    return [whole, ...beneath];
  });
}

function lineOf(task: Task, ready: number | null): Line {
  const waits = task.attempt > 0 || shownState(task) === "queued";
  return {
    id: task.id,
    label: task.id,
    state: shownState(task),
    depth: 0,
    of: [task],
    opens: false,
    readyAt: waits && !task.carriedFrom ? ready : null,
    attempts: task.attempt,
    isCarried: Boolean(task.carriedFrom),
  };
}

/** When the last that it needs ended; of a first task, when the run began. */
function readyAt(task: Task, byId: ReadonlyMap<string, Task>, began: string | null): number | null {
  let latest = began ? Date.parse(began) : null;
  for (const need of task.needs) {
    const ended = byId.get(need)?.endedAt;
    if (ended) latest = Math.max(latest ?? 0, Date.parse(ended));
  }
  return latest;
}

export interface Bar {
  from: number;
  to: number;
  state: string;
  attempt: number;
}

/** One bar for each attempt; of a mapped task, one from its first instance to its last. */
export function barsOf({ of, state, opens }: Line, now: number): Bar[] {
  const all = of.flatMap((task) => attemptsOf(task, now));
  if (!opens || all.length === 0) return all;
  const from = Math.min(...all.map((bar) => bar.from));
  return [{ from, to: Math.max(...all.map((bar) => bar.to)), state, attempt: 1 }];
}

function attemptsOf(task: Task, now: number): Bar[] {
  if (task.carriedFrom) return [];
  const { attempt, state, startedAt } = task;
  // What waits to look again has begun an attempt that does not count yet.
  const own = task.attempts.length > 0 ? task.attempts : [{ attempt, state, startedAt }];
  const known = own.filter((one) => one.startedAt !== null);
  const end = task.endedAt ? Date.parse(task.endedAt) : hasEnded(task.state) ? null : now;
  return known.flatMap((one, number) => {
    const from = Date.parse(one.startedAt ?? "");
    const next = known[number + 1]?.startedAt;
    const to = next ? Date.parse(next) : end;
    return to === null ? [] : [{ from, to: Math.max(from, to), state: one.state, attempt: one.attempt }];
  });
}

export interface Span {
  from: number;
  to: number;
}

/** From the first beginning to the last end; what was taken over happened elsewhere. */
export function spanSoFar(run: Run, tasks: readonly Task[]): Span {
  let from = Date.parse(run.startedAt ?? run.queuedAt ?? run.fireAt);
  let to = run.endedAt ? Date.parse(run.endedAt) : from;
  for (const { startedAt, endedAt, carriedFrom } of tasks) {
    if (carriedFrom) continue;
    if (startedAt) from = Math.min(from, Date.parse(startedAt));
    if (endedAt) to = Math.max(to, Date.parse(endedAt));
  }
  return { from, to: Math.max(to, from + 1_000) };
}
