/** What a step would do to a run, said before it is taken. */

import { hasEnded } from "../lib/states";
import { type Run, shownState, type Task, wholeTasks, withAllAfter } from "./tasks";
import { counted, listed } from "./words";

export type From = "all" | "failed" | "task";

export interface Again {
  anew: readonly string[];
  kept: readonly string[];
}

/** Which tasks a rerun starts anew, and which it takes over as they are. */
export function again(tasks: readonly Task[], from: From, task = ""): Again {
  const whole = wholeTasks(tasks);
  const begin = whole.filter(({ id, state }) => {
    if (from === "all") return true;
    return from === "task" ? id === task : state !== "succeeded" && state !== "skipped";
  });
  const anew = withAllAfter(
    whole,
    begin.map(({ id }) => id),
  );
  const ids = whole.map(({ id }) => id);
  return { anew: ids.filter((id) => anew.has(id)), kept: ids.filter((id) => !anew.has(id)) };
}

export function hasSomethingFailed(run: Run, tasks: readonly Task[] | undefined): boolean {
  if (run.state === "failed" || run.state === "cancelled") return true;
  return tasks?.some(({ state }) => state === "failed" || state === "upstream_failed") ?? false;
}

export function isGraph(run: Run): boolean {
  return run.taskCounts !== undefined;
}

const NAMED_MOST = 8;

export function rerunInWords({ anew, kept }: Again): string[] {
  const names = anew.length <= NAMED_MOST ? `: ${listed(anew, NAMED_MOST)}` : "";
  return [
    `Started anew: ${counted(anew.length, "task")}${names}.`,
    `Taken over as they ended, with their outputs: ${kept.length ? counted(kept.length, "task") : "none"}.`,
  ];
}

export function cancelInWords(run: Run, tasks: readonly Task[] | undefined): string[] {
  if (!isGraph(run) || !tasks) {
    return run.state === "running"
      ? ["Its process is ended; what it has done so far stays done."]
      : ["It has not begun, and never will."];
  }
  const whole = wholeTasks(tasks);
  const going = whole.filter((task) => ["running", "retrying"].includes(shownState(task))).map(({ id }) => id);
  const open = whole.filter(({ state }) => !hasEnded(state)).length;
  return [
    `Ended now: ${going.length ? listed(going) : "none, for nothing goes on at the moment"}.`,
    `Never started: ${counted(open - going.length, "task")}.`,
    `Left as they ended: ${counted(whole.length - open, "task")}.`,
  ];
}

export type Verdict = "succeeded" | "failed" | "skipped" | "cancelled";

/** What an end of a task by somebody's word means for the tasks after it. */
export function verdictInWords(tasks: readonly Task[] | undefined, task: Task, verdict: Verdict): string[] {
  const after = tasks ? withAllAfter(wholeTasks(tasks), [task.id]).size - 1 : 0;
  const said: Record<Verdict, string> = {
    succeeded: "The tasks after it go on as if it had succeeded, without an output.",
    failed: "It counts as failed: by their rules, the tasks after it are held up, or start.",
    skipped: "It counts as skipped: by their rules, the tasks after it are skipped, or start.",
    cancelled: "For the tasks after it, this counts as a failure.",
  };
  return [
    task.state === "running" ? "Whoever works on it is stopped, and what it reports later changes nothing." : "",
    task.map?.open ? `All of its ${task.map.open} open instances are ended, 500 at a time.` : "",
    after ? said[verdict] : "",
    `Tasks that come after it: ${after ? after.toLocaleString() : "none"}.`,
  ].filter(Boolean);
}
