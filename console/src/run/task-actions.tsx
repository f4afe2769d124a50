/** What one may do to a task of a run. */

import { useState } from "react";
import { answer, api } from "../api/client";
import { type Role, useMay, useWho } from "../lib/roles";
import { hasEnded } from "../lib/states";
import { Confirm } from "../ui/dialog";
import { Menu, type MenuItem } from "../ui/menu";
import { Button } from "../ui/parts";
import { say } from "../ui/toasts";
import { Note, Rerun, Sentences } from "./actions";
import { askedBy, type Document } from "./definition";
import { isGraph, type Verdict, verdictInWords } from "./outcome";
import { mappedOf, type Run, type Task } from "./tasks";
import { refreshRun } from "./use-run";
import { reasonParts } from "./words";

type Does = "approve" | "reject" | "retry" | "rerun" | Verdict;

interface TaskActionsProps {
  run: Run;
  task: Task;
  tasks: readonly Task[] | undefined;
  step: Document | null;
}

export function TaskActions({ run, task, tasks, step }: TaskActionsProps) {
  const may = useMay("operator");
  const mayDecide = useMayDecide(step);
  const [does, setDoes] = useState<Does | null>(null);
  const isOpen = !hasEnded(task.state);
  const asks = isOpen && (askedBy(step) !== null || (task.reason && reasonParts(task.reason).code === "approval"));
  const isAsking = asks && task.state !== "waiting" && mayDecide;
  const ends: MenuItem[] = [
    ...(asks && !mayDecide ? [] : [{ label: "Mark as succeeded…", run: () => setDoes("succeeded") }]),
    { label: "Mark as failed…", run: () => setDoes("failed") },
    ...(asks && !mayDecide ? [] : [{ label: "Mark as skipped…", run: () => setDoes("skipped") }]),
    { label: "Cancel this task…", danger: true, run: () => setDoes("cancelled") },
  ];
  const canRerun = may && !isOpen && isGraph(run) && hasEnded(run.state);
  if (!isAsking && !canRerun && !(may && isOpen)) return null;
  return (
    <div className="row wrap">
      {isAsking && (
        <>
          <Button kind="primary" icon="check" onClick={() => setDoes("approve")}>
            Approve
          </Button>
          <Button kind="danger" icon="close" onClick={() => setDoes("reject")}>
            Reject
          </Button>
        </>
      )}
      {may && task.state === "retrying" && !asks && (
        <Button icon="rerun" onClick={() => setDoes("retry")}>
          Retry now
        </Button>
      )}
      {may && isOpen && (
        <Menu label={`End ${task.id} by hand`} icon="down" items={ends}>
          End by hand
        </Menu>
      )}
      {canRerun && (
        <Button icon="rerun" onClick={() => setDoes("rerun")}>
          Rerun from here
        </Button>
      )}
      {does === "rerun" && (
        <Rerun run={run} tasks={tasks} from="task" task={mappedOf(task.id) ?? task.id} onClose={() => setDoes(null)} />
      )}
      {does !== null && does !== "rerun" && (
        <Decide run={run} task={task} tasks={tasks} does={does} onClose={() => setDoes(null)} />
      )}
    </div>
  );
}

const ORDER: readonly Role[] = ["viewer", "operator", "editor", "admin"];

/** An approval names members and roles; where it names nobody, it asks operators. */
function useMayDecide(step: Document | null): boolean {
  const who = useWho().data;
  const by = askedBy(step) ?? [];
  if (!who) return false;
  const names = by.length ? by : ["operator"];
  return names.some((name) => {
    const least = ORDER.indexOf(name as Role);
    if (least >= 0) return ORDER.indexOf(who.role as Role) >= least;
    return who.kind === "person" && name === who.caller;
  });
}

interface DecideProps extends Omit<TaskActionsProps, "step"> {
  does: Exclude<Does, "rerun">;
  onClose: () => void;
}

function Decide({ run, task, tasks, does, onClose }: DecideProps) {
  const [note, setNote] = useState("");
  const about = wordsOf(does, task, tasks);
  const decide = async () => {
    await send(does, { job: run.jobId, run: run.runId, task: task.id }, note);
    say(about.done);
    await refreshRun(run.jobId, run.runId);
  };
  return (
    <Confirm title={about.title} does={about.does} danger={about.danger} run={decide} onClose={onClose}>
      <Sentences of={about.said} />
      <Note value={note} onChange={setNote} />
    </Confirm>
  );
}

interface About {
  title: string;
  does: string;
  done: string;
  said: readonly string[];
  danger: boolean;
}

function wordsOf(does: DecideProps["does"], task: Task, tasks: readonly Task[] | undefined): About {
  const { id } = task;
  const asks = task.reason ? reasonParts(task.reason).detail : "";
  const plain = { danger: false };
  switch (does) {
    case "approve": {
      const said = [asks, ...verdictInWords(tasks, task, "succeeded").slice(-1)].filter(Boolean);
      return { title: `Approve ${id}?`, does: "Approve", done: `${id} is approved.`, said, ...plain };
    }
    case "reject": {
      const said = [asks, ...verdictInWords(tasks, task, "failed")].filter(Boolean);
      return { title: `Reject ${id}?`, does: "Reject", done: `${id} is rejected.`, said, danger: true };
    }
    case "retry": {
      const looks = task.reason && reasonParts(task.reason).code === "waiting";
      const said = [looks ? "It looks again at once." : `Attempt ${task.attempt + 1} begins at once.`];
      return { title: `Retry ${id} now?`, does: "Retry now", done: `${id} is tried again.`, said, ...plain };
    }
    case "cancelled": {
      const said = verdictInWords(tasks, task, does);
      return { title: `Cancel ${id}?`, does: "Cancel the task", done: `${id} is cancelled.`, said, danger: true };
    }
    default: {
      const said = verdictInWords(tasks, task, does);
      const title = `Mark ${id} as ${does}?`;
      return { title, does: `Mark as ${does}`, done: `${id} is marked as ${does}.`, said, danger: does === "failed" };
    }
  }
}

function send(does: DecideProps["does"], path: { job: string; run: string; task: string }, note: string) {
  const asked = { params: { path }, body: { note } };
  switch (does) {
    case "approve":
      return answer(api.POST("/jobs/{job}/runs/{run}/tasks/{task}/approve", asked));
    case "reject":
      return answer(api.POST("/jobs/{job}/runs/{run}/tasks/{task}/reject", asked));
    case "retry":
      return answer(api.POST("/jobs/{job}/runs/{run}/tasks/{task}/retry", asked));
    case "cancelled":
      return answer(api.POST("/jobs/{job}/runs/{run}/tasks/{task}/cancel", asked));
    default:
      return answer(
        api.POST("/jobs/{job}/runs/{run}/tasks/{task}/mark", { params: { path }, body: { note, state: does } }),
      );
  }
}
