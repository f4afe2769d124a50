/** What one may do to a whole run. What it will do is said before it is done. */

import { useState } from "react";
import { useLocation } from "wouter";
import { answer, api } from "../api/client";
import { useMay } from "../lib/roles";
import { hasEnded } from "../lib/states";
import { Confirm } from "../ui/dialog";
import { SelectField, TextField } from "../ui/form";
import { Menu, type MenuItem } from "../ui/menu";
import { Button } from "../ui/parts";
import { say } from "../ui/toasts";
import { runPath } from "./link";
import { again, cancelInWords, type From, hasSomethingFailed, isGraph, rerunInWords } from "./outcome";
import { type Run, type Task, wholeTasks } from "./tasks";
import { refreshRun } from "./use-run";

type Asked = { does: "cancel" } | { does: "rerun"; from: From; task: string };

export function RunActions({ run, tasks }: { run: Run; tasks: readonly Task[] | undefined }) {
  const may = useMay("operator");
  const [asked, setAsked] = useState<Asked | null>(null);
  if (!may) return null;
  const close = () => setAsked(null);
  return (
    <>
      {hasEnded(run.state) ? (
        <RerunButtons run={run} tasks={tasks} onAsk={setAsked} />
      ) : (
        <Button kind="danger" icon="stop" onClick={() => setAsked({ does: "cancel" })}>
          Cancel
        </Button>
      )}
      {asked?.does === "cancel" && <CancelRun run={run} tasks={tasks} onClose={close} />}
      {asked?.does === "rerun" && <Rerun run={run} tasks={tasks} from={asked.from} task={asked.task} onClose={close} />}
    </>
  );
}

function RerunButtons(props: { run: Run; tasks: readonly Task[] | undefined; onAsk: (asked: Asked) => void }) {
  const { run, tasks, onAsk } = props;
  const ask = (from: From, task = "") => onAsk({ does: "rerun", from, task });
  if (!isGraph(run)) {
    return (
      <Button kind="primary" icon="rerun" onClick={() => ask("all")}>
        Rerun
      </Button>
    );
  }
  const failed = hasSomethingFailed(run, tasks);
  const others: MenuItem[] = [
    ...(failed ? [{ label: "Rerun all of it", icon: "rerun" as const, run: () => ask("all") }] : []),
    { label: "Rerun from a task…", icon: "rerun", run: () => ask("task", wholeTasks(tasks ?? [])[0]?.id ?? "") },
  ];
  return (
    <>
      <Button kind="primary" icon="rerun" onClick={() => ask(failed ? "failed" : "all")}>
        {failed ? "Rerun from failed" : "Rerun"}
      </Button>
      <Menu label="Other ways to rerun" items={others} />
    </>
  );
}

interface StepProps {
  run: Run;
  tasks: readonly Task[] | undefined;
  onClose: () => void;
}

function CancelRun({ run, tasks, onClose }: StepProps) {
  const [note, setNote] = useState("");
  const cancel = async () => {
    const path = { job: run.jobId, run: run.runId };
    await answer(api.POST("/jobs/{job}/runs/{run}/cancel", { params: { path }, body: { note } }));
    say(`The run of ${run.jobId} is cancelled.`);
    await refreshRun(run.jobId, run.runId);
  };
  return (
    <Confirm title={`Cancel this run of ${run.jobId}?`} does="Cancel the run" danger run={cancel} onClose={onClose}>
      <Sentences of={cancelInWords(run, tasks)} />
      <Note value={note} onChange={setNote} />
    </Confirm>
  );
}

export function Rerun({ run, tasks, from, task, onClose }: StepProps & { from: From; task: string }) {
  const [, go] = useLocation();
  const [chosen, setChosen] = useState(task);
  const [note, setNote] = useState("");
  const rerun = async () => {
    const path = { job: run.jobId, run: run.runId };
    const body =
      from === "task" ? { from, task: chosen, note: note || null } : { from, note: note || null, task: null };
    const fresh = await answer(api.POST("/jobs/{job}/runs/{run}/rerun", { params: { path }, body }));
    say(`${run.jobId} runs again.`);
    await refreshRun(run.jobId, run.runId);
    go(runPath(fresh.jobId, fresh.runId));
  };
  const whole = tasks ? wholeTasks(tasks) : [];
  return (
    <Confirm
      title={from === "all" ? `Run ${run.jobId} again?` : `Run a part of ${run.jobId} again?`}
      does="Rerun"
      run={rerun}
      onClose={onClose}
    >
      {from === "task" && (
        <SelectField
          label="From the task"
          value={chosen}
          choices={whole.map(({ id }) => ({ value: id, label: id }))}
          onChange={(event) => setChosen(event.target.value)}
        />
      )}
      <Sentences
        of={[
          "A new run of the same fire begins, in the version of the job that is in force now. This run stays as it is.",
          ...(isGraph(run) && tasks ? rerunInWords(again(tasks, from, chosen)) : []),
        ]}
      />
      <Note value={note} onChange={setNote} />
    </Confirm>
  );
}

export function Sentences({ of }: { of: readonly string[] }) {
  return (
    <div className="stack sentences">
      {of.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
    </div>
  );
}

export function Note({ value, onChange }: { value: string; onChange: (note: string) => void }) {
  return (
    <TextField
      label="Note"
      hint="Kept in the audit log."
      maxLength={200}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
