/** What one can do with a job, offered to those who may: from a row of the list, and from the job's own page. */

import { lazy, type ReactNode, Suspense, useCallback, useState } from "react";
import { useLocation } from "wouter";
import { cache, of } from "../api/cache";
import type { Shape } from "../api/client";
import { useMay } from "../lib/roles";
import { Menu, type MenuItem } from "../ui/menu";
import { Button, LinkButton } from "../ui/parts";
import "../style/jobs.css";

const TriggerDialog = lazy(() => import("./trigger"));
const PauseDialog = lazy(() => import("./pause"));
const ResumeDialog = lazy(() => import("./resume"));
const DeleteDialog = lazy(() => import("./delete"));

export type JobAction = "trigger" | "pause" | "resume" | "delete";
/** A job as lists and its own page know it. */
export type JobInQuestion = Pick<Shape<"Job">, "jobId" | "status"> & { params?: unknown };

export interface DialogProps {
  job: JobInQuestion;
  onClose: () => void;
  onDone: (action: JobAction, runId?: string) => void;
}

export interface JobMay {
  trigger: boolean;
  pause: boolean;
  resume: boolean;
  edit: boolean;
  delete: boolean;
}

export function useJobMay(): (job: JobInQuestion) => JobMay {
  const operates = useMay("operator");
  const edits = useMay("editor");
  return useCallback(
    (job) => {
      const isThere = job.status !== "deleted";
      return {
        trigger: operates && isThere,
        pause: operates && isThere && job.status !== "paused",
        resume: operates && job.status === "paused",
        edit: edits && isThere,
        delete: edits && isThere,
      };
    },
    [operates, edits],
  );
}

/** The entries of a job's menu. */
export function jobItems(
  job: JobInQuestion,
  may: JobMay,
  open: (action: JobAction) => void,
  go: (to: string) => void,
): MenuItem[] {
  const items: (MenuItem | false)[] = [
    may.trigger && { label: "Trigger", icon: "play", run: () => open("trigger") },
    may.pause && { label: "Pause", icon: "pause", run: () => open("pause") },
    may.resume && { label: "Resume", icon: "play", run: () => open("resume") },
    may.edit && { label: "Edit", icon: "edit", run: () => go(`/jobs/${job.jobId}/edit`) },
    may.edit && { label: "Copy", icon: "copy", run: () => go(`/jobs/new?from=job:${job.jobId}`) },
    may.delete && { label: "Delete", icon: "trash", danger: true, run: () => open("delete") },
  ];
  return items.filter((item) => item !== false);
}

/** The dialog of an action; it does what it asks about, and says so. */
export function JobDialog({ action, ...props }: DialogProps & { action: JobAction }) {
  const dialogs = { trigger: TriggerDialog, pause: PauseDialog, resume: ResumeDialog, delete: DeleteDialog };
  const Chosen = dialogs[action];
  return (
    <Suspense fallback={null}>
      <Chosen
        {...props}
        onDone={(done, runId) => {
          // Of one that is gone nothing is there to be asked for again.
          if (done === "delete") refreshLists();
          else refreshJob(props.job.jobId);
          props.onDone(done, runId);
        }}
      />
    </Suspense>
  );
}

interface ActionsOfJob {
  may: JobMay;
  items: MenuItem[];
  open: (action: JobAction) => void;
  /** To be put somewhere on the page: the dialog that is open, if one is. */
  dialog: ReactNode;
}

/** The actions of one job on its own page; of the list, whose rows come and go, the page keeps the dialog itself. */
export function useJobActions(job: JobInQuestion, onDone?: DialogProps["onDone"]): ActionsOfJob {
  const [, go] = useLocation();
  const [action, open] = useState<JobAction | null>(null);
  const may = useJobMay()(job);
  const done: DialogProps["onDone"] = (what, runId) => {
    if (onDone) onDone(what, runId);
    else if (what === "delete") go("/jobs");
  };
  return {
    may,
    items: jobItems(job, may, open, go),
    open,
    dialog: action && <JobDialog action={action} job={job} onClose={() => open(null)} onDone={done} />,
  };
}

/** The same as buttons, the rarer ones in a menu. */
export function JobActions({ job, onDone }: { job: JobInQuestion; onDone?: DialogProps["onDone"] }) {
  const { may, items, open, dialog } = useJobActions(job, onDone);
  return (
    <>
      {may.trigger && (
        <Button kind="primary" icon="play" onClick={() => open("trigger")}>
          Trigger
        </Button>
      )}
      {may.pause && (
        <Button icon="pause" onClick={() => open("pause")}>
          Pause
        </Button>
      )}
      {may.resume && (
        <Button icon="play" onClick={() => open("resume")}>
          Resume
        </Button>
      )}
      {may.edit && (
        <LinkButton href={`/jobs/${job.jobId}/edit`} icon="edit">
          Edit
        </LinkButton>
      )}
      <Menu label="More to do" items={items.filter(({ label }) => label === "Copy" || label === "Delete")} />
      {dialog}
    </>
  );
}

/** Ask again for all that shows this job. */
export function refreshJob(job: string): void {
  void cache.invalidateQueries({ queryKey: of.job(job) });
  refreshLists();
}

function refreshLists(): void {
  for (const queryKey of [of.jobs, of.overview, of.runs]) void cache.invalidateQueries({ queryKey });
}
