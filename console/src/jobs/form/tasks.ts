/** Changes to the list of tasks that keep the rest of the job right: what others need, and what they take from it. */

import { type Document, isScalar, isSeq, visit, type YAMLMap, type YAMLSeq } from "yaml";
import { put, remove } from "../document";

export function tasksIn(doc: Document): YAMLSeq | null {
  const tasks = doc.get("tasks", true);
  return isSeq(tasks) ? tasks : null;
}

/** An id that no other task has. */
export function freeId(taken: readonly string[], wish = "task"): string {
  if (!taken.includes(wish)) return wish;
  let number = 2;
  while (taken.includes(`${wish}-${number}`)) number += 1;
  return `${wish}-${number}`;
}

/** A job with one step becomes one with a task that has this step. */
export function spread(doc: Document): void {
  const run = doc.get("run", true);
  const command = doc.get("command", true);
  doc.delete("run");
  doc.delete("command");
  put(doc, ["tasks"], [{ id: "main" }]);
  if (run) doc.setIn(["tasks", 0, "run"], run);
  else if (command) doc.setIn(["tasks", 0, "command"], command);
}

export function addTask(doc: Document, task: Record<string, unknown>): void {
  const tasks = tasksIn(doc);
  put(doc, ["tasks", tasks ? tasks.items.length : 0], task);
}

export function copyTask(doc: Document, index: number, id: string): void {
  const tasks = tasksIn(doc);
  const node = tasks?.items[index] as YAMLMap | undefined;
  if (!tasks || !node) return;
  const copy = node.clone() as YAMLMap;
  copy.set("id", id);
  tasks.items.splice(index + 1, 0, copy);
}

export function moveTask(doc: Document, index: number, by: number): void {
  const items = tasksIn(doc)?.items;
  const to = index + by;
  if (!items || to < 0 || to >= items.length) return;
  const [moved] = items.splice(index, 1);
  items.splice(to, 0, moved);
}

export function removeTask(doc: Document, index: number, id: string): void {
  tasksIn(doc)?.items.splice(index, 1);
  eachNeeds(doc, (needs, at) => {
    const left = needs.items.filter((item) => !(isScalar(item) && item.value === id));
    if (left.length === needs.items.length) return;
    needs.items = left;
    if (left.length === 0) remove(doc, ["tasks", at, "needs"]);
  });
}

/** Under another id, which others that need it or read its output say too. */
export function renameTask(doc: Document, index: number, from: string, to: string): void {
  put(doc, ["tasks", index, "id"], to);
  if (!from) return;
  eachNeeds(doc, (needs) => {
    for (const item of needs.items) if (isScalar(item) && item.value === from) item.value = to;
  });
  visit(doc, {
    Scalar: (key, node) => {
      if (key === "key" || typeof node.value !== "string") return;
      node.value = node.value.replace(/\$\{[^}]*\}/g, (part) => part.replaceAll(`tasks.${from}.`, `tasks.${to}.`));
    },
  });
}

function eachNeeds(doc: Document, what: (needs: YAMLSeq, task: number) => void): void {
  tasksIn(doc)?.items.forEach((_, at) => {
    const needs = doc.getIn(["tasks", at, "needs"], true);
    if (isSeq(needs)) what(needs, at);
  });
}
