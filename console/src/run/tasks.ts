/** The tasks of a run, and the instances of mapped ones beside them. */

import type { Shape } from "../api/client";
import { hasEnded } from "../lib/states";

export type Run = Shape<"Run">;
export type Task = Shape<"TaskRun">;

const INSTANCE = /^(.+)\[(\d+)\]$/;

/** The mapped task that `load[3]` is an instance of; null of a task that stands for itself. */
export function mappedOf(id: string): string | null {
  return INSTANCE.exec(id)?.[1] ?? null;
}

/** Those that the graph is made of. */
export function wholeTasks(tasks: readonly Task[]): Task[] {
  return tasks.filter(({ id }) => !id.endsWith("]"));
}

export function instancesOf(tasks: readonly Task[], id: string): Task[] {
  const start = `${id}[`;
  return tasks.filter((task) => task.id.startsWith(start));
}

/** The instances of every mapped task. */
export function allInstances(tasks: readonly Task[]): ReadonlyMap<string, readonly Task[]> {
  const found = new Map<string, Task[]>();
  for (const task of tasks) if (task.id.endsWith("]")) push(found, mappedOf(task.id) ?? task.id, task);
  return found;
}

export interface Counts {
  total: number;
  over: number;
  failed: number;
}

/** How far a mapped task is. */
export function countsOf(task: Task): Counts | null {
  const counts = task.map;
  if (!counts) return null;
  const total = counts.total ?? 0;
  return { total, over: total - (counts.open ?? 0), failed: (counts.failed ?? 0) + (counts.cancelled ?? 0) };
}

/** A mapped task stays queued until it is over; who looks wants to know whether anything goes on. */
export function shownState(task: Task): string {
  const counts = countsOf(task);
  return counts && !hasEnded(task.state) && counts.over > 0 ? "running" : task.state;
}

/** A task's progress in percent, where there is one. */
export function progressOf(task: Task): number | null {
  const counts = countsOf(task);
  if (counts) return counts.total ? (counts.over * 100) / counts.total : null;
  return typeof task.progress === "number" ? task.progress : null;
}

/** The tasks that need these, directly or not, and these themselves. */
export function withAllAfter(tasks: readonly Task[], ids: Iterable<string>): Set<string> {
  const after = new Map<string, string[]>();
  for (const { id, needs } of tasks) for (const need of needs) push(after, need, id);
  const found = new Set(ids);
  const open = [...found];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const next of after.get(id) ?? []) {
      if (found.has(next)) continue;
      found.add(next);
      open.push(next);
    }
  }
  return found;
}

export function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

export function isOpen(state: string): boolean {
  return !hasEnded(state);
}
