/** What the graph is made of: tasks, and groups that are closed, in topological order, and what needs what. */

import { type Task, wholeTasks } from "../tasks";

export interface Vertex {
  id: string;
  kind: "task" | "group";
  label: string;
  /** The innermost open group around it. */
  group: string;
  /** Itself, or all that is in the group. */
  members: readonly string[];
}

export interface Structure {
  /** Equal for equal structures. */
  key: string;
  vertices: readonly Vertex[];
  /** Pairs of places in `vertices`. */
  edges: readonly (readonly [number, number])[];
  places: ReadonlyMap<string, number>;
  after: readonly (readonly number[])[];
  before: readonly (readonly number[])[];
}

/** `a.b` lies in `a`. */
export function groupsAround(group: string): string[] {
  if (!group) return [];
  const parts = group.split(".");
  return parts.map((_, index) => parts.slice(0, index + 1).join("."));
}

/** All groups of these tasks, outer ones first, with how many tasks are in each. */
export function groupsOf(tasks: readonly Task[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const task of wholeTasks(tasks)) {
    for (const group of groupsAround(task.group ?? "")) found.set(group, (found.get(group) ?? 0) + 1);
  }
  return found;
}

export function structureOf(tasks: readonly Task[], closed: ReadonlySet<string> = new Set()): Structure {
  const vertices = new Map<string, Vertex & { members: string[] }>();
  const vertexOf = new Map<string, string>();
  const whole = wholeTasks(tasks);
  for (const task of whole) {
    const around = groupsAround(task.group ?? "");
    const shut = around.findIndex((group) => closed.has(group));
    const id = shut < 0 ? task.id : groupVertex(around[shut] ?? "");
    vertexOf.set(task.id, id);
    const known = vertices.get(id);
    if (known) known.members.push(task.id);
    else if (shut < 0) vertices.set(id, { id, kind: "task", label: id, group: around.at(-1) ?? "", members: [id] });
    else {
      const label = around[shut] ?? "";
      vertices.set(id, { id, kind: "group", label, group: around[shut - 1] ?? "", members: [task.id] });
    }
  }
  const after = new Map<string, Set<string>>();
  for (const task of whole) {
    const to = vertexOf.get(task.id) ?? "";
    for (const need of task.needs) {
      const from = vertexOf.get(need);
      if (from === undefined || from === to) continue;
      const known = after.get(from);
      if (known) known.add(to);
      else after.set(from, new Set([to]));
    }
  }
  return inOrder([...vertices.values()], after);
}

export function groupVertex(group: string): string {
  return `group:${group}`; // no task has such an id: a colon is not allowed in one
}

function inOrder(vertices: readonly Vertex[], after: ReadonlyMap<string, ReadonlySet<string>>): Structure {
  const number = new Map(vertices.map(({ id }, at) => [id, at]));
  const next = vertices.map(({ id }) => [...(after.get(id) ?? [])].map((to) => number.get(to) ?? 0));
  const open = new Array<number>(vertices.length).fill(0);
  for (const ends of next) for (const to of ends) open[to] = (open[to] ?? 0) + 1;
  const order = vertices.flatMap((_, at) => (open[at] === 0 ? [at] : []));
  const place = new Array<number>(vertices.length).fill(-1);
  let first = 0;
  for (let done = 0; done < vertices.length; done += 1) {
    if (done === order.length) {
      // Closed groups may need each other in a circle: then the first that is left begins.
      while ((open[first] ?? 0) <= 0) first += 1;
      open[first] = 0;
      order.push(first);
    }
    const at = order[done] ?? 0;
    place[at] = done;
    for (const to of next[at] ?? []) {
      if (place[to] !== -1 || open[to] === 0) continue;
      open[to] = (open[to] ?? 0) - 1;
      if (open[to] === 0) order.push(to);
    }
  }
  const sorted = order.flatMap((at) => vertices[at] ?? []);
  const edges = order.flatMap((at, from) => (next[at] ?? []).map((to) => [from, place[to] ?? 0] as const));
  const places = new Map(sorted.map(({ id }, at) => [id, at]));
  return { key: keyOf(sorted, edges), vertices: sorted, edges, places, ...neighbours(sorted.length, edges) };
}

function neighbours(count: number, edges: Structure["edges"]) {
  const after: number[][] = Array.from({ length: count }, () => []);
  const before: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) {
    after[from]?.push(to);
    before[to]?.push(from);
  }
  return { after, before };
}

/** Two numbers of 32 bits over everything that a layout depends on. */
function keyOf(vertices: readonly Vertex[], edges: Structure["edges"]): string {
  let one = 0x811c9dc5;
  let two = 0x9e3779b9;
  const mix = (value: number) => {
    one = Math.imul(one ^ value, 0x01000193);
    two = Math.imul((two << 5) ^ (two >>> 2) ^ value, 0x85ebca6b);
  };
  for (const { id, group } of vertices) {
    const text = `${id}\n${group}\n`;
    for (let at = 0; at < text.length; at += 1) mix(text.charCodeAt(at));
  }
  for (const [from, to] of edges) {
    mix(from);
    mix(to);
  }
  return `${vertices.length}:${edges.length}:${(one >>> 0).toString(36)}${(two >>> 0).toString(36)}`;
}
