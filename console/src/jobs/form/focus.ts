/** Going to the field that something is wrong with: it may be in a task that is folded, or behind a word. */

import { named, type Path } from "../definition";
import { pathOf } from "../document";

/** Whether the form shows the field, or something that it is part of. */
export function focusField(path: string, open: (place: { path: string }) => void): boolean {
  const keys = pathOf(path);
  open({ path });
  const [first, second] = keys;
  const root = first === "tasks" && second !== undefined ? named([first, second]) : String(first);
  if (!fieldOf(keys) && !document.querySelector(selector(root))) return false;
  // What was folded is there after the next paint.
  window.setTimeout(() => {
    const field = fieldOf(keys);
    if (!field) return;
    for (let fold = field.closest("details"); fold; fold = fold.parentElement?.closest("details") ?? null)
      fold.open = true;
    const input = field.matches("input, select, textarea")
      ? field
      : field.querySelector<HTMLElement>("input, select, textarea, button");
    (input ?? field).focus({ preventScroll: true });
    field.scrollIntoView({ block: "center" });
  }, 50);
  return true;
}

function fieldOf(keys: Path): HTMLElement | null {
  for (let length = keys.length; length > 0; length -= 1) {
    const found = document.querySelector<HTMLElement>(selector(named(keys.slice(0, length))));
    if (found) return found;
  }
  return null;
}

function selector(path: string): string {
  return `.job-form [data-path="${CSS.escape(path)}"]`;
}
