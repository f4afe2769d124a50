/** Two edits of one version: what somebody else changed is put into mine, wherever I left things as they were. */

import { isObject, named, type Path } from "./definition";
import { edited, put, remove, type Written } from "./document";

export interface Conflict {
  path: string;
  mine: unknown;
  theirs: unknown;
}

type Step = { path: Path; value: unknown };

export function merged(mine: Written, base: unknown, theirs: unknown): { written: Written; conflicts: Conflict[] } {
  const steps: Step[] = [];
  const conflicts: Conflict[] = [];
  compare([], base, mine.value, theirs, steps, conflicts);
  if (steps.length === 0) return { written: mine, conflicts };
  const written = edited(mine, (doc) => {
    // Later items of a list go first, so that the places of the others stay what they are.
    for (const { path, value } of steps.filter((step) => step.value !== undefined)) put(doc, path, value);
    for (const { path } of steps.filter((step) => step.value === undefined).reverse()) remove(doc, path);
  });
  return { written, conflicts };
}

function compare(
  path: Path,
  base: unknown,
  mine: unknown,
  theirs: unknown,
  steps: Step[],
  conflicts: Conflict[],
): void {
  if (same(base, theirs) || same(mine, theirs)) return;
  if (isObject(mine) && isObject(theirs) && (isObject(base) || base === undefined)) {
    const before: Record<string, unknown> = base ?? {};
    for (const name of new Set([...Object.keys(before), ...Object.keys(mine), ...Object.keys(theirs)])) {
      compare([...path, name], before[name], mine[name], theirs[name], steps, conflicts);
    }
    return;
  }
  const ids = [base, mine, theirs].map(idsOf);
  if (ids[0] && ids[1] && ids[2]) byId(path, [base, mine, theirs] as Lists, ids as string[][], steps, conflicts);
  else if (same(base, mine)) steps.push({ path, value: theirs });
  else conflicts.push({ path: named(path), mine, theirs });
}

type Lists = [unknown[], unknown[], unknown[]];

/** Tasks are known by their ids, wherever they stand. */
function byId(path: Path, lists: Lists, ids: string[][], steps: Step[], conflicts: Conflict[]): void {
  const [base = [], mine = [], theirs = []] = ids;
  const one = (list: number, id: string) => lists[list]?.[ids[list]?.indexOf(id) ?? -1];
  mine.forEach((id, place) => {
    compare([...path, place], one(0, id), one(1, id), one(2, id), steps, conflicts);
  });
  let end = mine.length;
  for (const id of theirs.filter((each) => !mine.includes(each))) {
    if (!base.includes(id)) steps.push({ path: [...path, end++], value: one(2, id) });
    else if (!same(one(0, id), one(2, id)))
      conflicts.push({ path: `${named(path)}: ${id}`, mine: undefined, theirs: one(2, id) });
  }
}

function idsOf(list: unknown): string[] | null {
  if (!Array.isArray(list) || !list.every((item) => isObject(item) && typeof item.id === "string")) return null;
  const ids = list.map((item) => String(item.id));
  return new Set(ids).size === ids.length ? ids : null;
}

function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, place) => same(item, other[place]));
  if (!isObject(one) || !isObject(other)) return false;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => same(one[name], other[name]));
}
