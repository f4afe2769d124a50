/**
 * What was heard of a run since it was last asked for. A change is shown at once; the next snapshot that was asked for
 * after it was heard holds it already, and more than it says.
 */

import type { Change } from "../api/live";
import { hasEnded } from "../lib/states";
import type { Run, Task } from "./tasks";

interface Heard {
  state: string;
  reason: string | null;
  attempt: number;
  progress: number | null;
  seq: number;
  at: string | null;
  heardAt: number;
}

export class News {
  private readonly tasks = new Map<string, Heard>();
  private run: Heard | null = null;

  constructor(
    private readonly job: string,
    private readonly runId: string,
  ) {}

  /** Whether any of these changes is about this run and new. */
  hear(changes: readonly Change[], now: number): boolean {
    let isNew = false;
    for (const change of changes) {
      if (change.jobId !== this.job || change.runId !== this.runId) continue;
      const before = change.taskId ? this.tasks.get(change.taskId) : this.run;
      if (before && before.seq >= change.seq) continue;
      const heard = heardOf(change, now);
      if (change.taskId) this.tasks.set(change.taskId, heard);
      else this.run = heard;
      isNew = true;
    }
    return isNew;
  }

  /** The tasks as they are now, of a snapshot that was asked for at that time. */
  onTasks(tasks: readonly Task[], askedAt: number): readonly Task[] {
    if (this.tasks.size === 0) return tasks;
    return tasks.map((task) => {
      const heard = this.tasks.get(task.id);
      return heard && isNewer(heard, task.state, askedAt) ? changedTask(task, heard) : task;
    });
  }

  onRun(run: Run, askedAt: number): Run {
    const heard = this.run;
    if (!heard || !isNewer(heard, run.state, askedAt)) return run;
    const state = heard.state as Run["state"];
    return {
      ...run,
      state,
      reason: heard.reason,
      attempt: heard.attempt,
      progress: hasEnded(state) ? heard.progress : (heard.progress ?? run.progress),
      startedAt: run.startedAt ?? (state === "running" ? heard.at : null),
      endedAt: hasEnded(state) ? (run.endedAt ?? heard.at) : null,
    };
  }
}

function heardOf(change: Change, now: number): Heard {
  const { state, seq, reason, attempt, progress, at } = change;
  return {
    state,
    seq,
    reason: typeof reason === "string" ? reason : null,
    attempt: typeof attempt === "number" ? attempt : 0,
    progress: typeof progress === "number" ? progress : null,
    at: typeof at === "string" ? at : null,
    heardAt: now,
  };
}

/** What has ended stays so: a snapshot that says otherwise is older, whenever it was asked for. */
function isNewer(heard: Heard, state: string, askedAt: number): boolean {
  return heard.heardAt >= askedAt ? !hasEnded(state) : hasEnded(heard.state) && !hasEnded(state);
}

function changedTask(task: Task, heard: Heard): Task {
  const startedAt = task.startedAt ?? (heard.state === "running" ? heard.at : null);
  const known = task.attempts.filter(({ attempt }) => attempt !== heard.attempt);
  const own = task.attempts.find(({ attempt }) => attempt === heard.attempt);
  return {
    ...task,
    state: heard.state,
    reason: heard.reason,
    attempt: heard.attempt,
    progress: heard.progress,
    startedAt,
    endedAt: hasEnded(heard.state) ? (task.endedAt ?? heard.at) : null,
    attempts: heard.attempt
      ? [...known, { ...own, attempt: heard.attempt, state: heard.state, startedAt: own?.startedAt ?? startedAt }]
      : task.attempts,
  };
}
