/** How each vertex looks now: the state of its task, or of all that is in a closed group. */

import { hasEnded, lookOf } from "../../lib/states";
import { countsOf, progressOf, shownState, type Task } from "../tasks";
import { reasonParts } from "../words";
import type { Structure, Vertex } from "./structure";

export interface Seen {
  state: string;
  word: string;
  count: string;
  /** Less than 0 where there is none. */
  progress: number;
  failed: boolean;
}

export function seenOf(structure: Structure, tasks: ReadonlyMap<string, Task>): Seen[] {
  return structure.vertices.map((vertex) =>
    vertex.kind === "group" ? ofGroup(vertex, tasks) : ofTask(tasks.get(vertex.id)),
  );
}

function ofTask(task: Task | undefined): Seen {
  if (!task) return { state: "waiting", word: lookOf("waiting").label, count: "", progress: -1, failed: false };
  const counts = countsOf(task);
  const progress = progressOf(task);
  const isShown = progress !== null && (counts !== null || !hasEnded(task.state));
  return {
    state: shownState(task),
    word: wordOf(task),
    count: counts ? `${counts.over}/${counts.total}` : "",
    progress: isShown ? progress : -1,
    failed: (counts?.failed ?? 0) > 0,
  };
}

const WAITS: Readonly<Record<string, string>> = {
  approval: "Needs approval",
  waiting: "Waits",
  pool: "Pool is full",
  concurrency: "Held back",
  worker: "No worker free",
};

/** The state, or what an open task waits for, which says more. */
function wordOf(task: Task): string {
  const state = shownState(task);
  const waits = state === "queued" || state === "retrying" ? WAITS[reasonParts(task.reason ?? "").code] : undefined;
  return waits ?? lookOf(state).label;
}

function ofGroup(vertex: Vertex, tasks: ReadonlyMap<string, Task>): Seen {
  const states = vertex.members.map((id) => {
    const task = tasks.get(id);
    return task ? shownState(task) : "waiting";
  });
  const over = states.filter(hasEnded).length;
  const state = together(states);
  return {
    state,
    word: lookOf(state).label,
    count: `${over}/${states.length}`,
    progress: (over * 100) / Math.max(1, states.length),
    failed: states.some((state) => state === "failed" || state === "upstream_failed"),
  };
}

/** One state for many: the worst that is there, else what goes on, else how they ended. */
export function together(states: readonly string[]): string {
  const all = new Set(states);
  for (const state of ["failed", "upstream_failed", "retrying", "running"]) if (all.has(state)) return state;
  const open = states.filter((state) => !hasEnded(state)).length;
  if (open && open < states.length) return "running";
  if (open) return all.has("queued") ? "queued" : "waiting";
  for (const state of ["cancelled", "succeeded"]) if (all.has(state)) return state;
  return states[0] ?? "waiting";
}

export function countStates(tasks: readonly Task[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const task of tasks) {
    if (task.id.endsWith("]")) continue;
    const state = shownState(task);
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return counts;
}

/** The vertices whose task, or one of whose tasks, has this in its name and is in this state. */
export function matching(
  structure: Structure,
  tasks: ReadonlyMap<string, Task>,
  text: string,
  state: string,
): Set<number> {
  const found = new Set<number>();
  structure.vertices.forEach((vertex, place) => {
    const isFound = vertex.members.some((id) => {
      const task = tasks.get(id);
      const inState = !state || (task && shownState(task) === state);
      return inState && (!text || id.toLowerCase().includes(text) || vertex.label.toLowerCase().includes(text));
    });
    if (isFound) found.add(place);
  });
  return found;
}
