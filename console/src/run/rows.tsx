/** Runs in a list: of one job or across jobs, a few or very many. */

import { Link } from "wouter";
import type { Shape } from "../api/client";
import { useMedia } from "../lib/hooks";
import { Lasted, Moment, StatePill } from "../ui/parts";
import { Rows } from "../ui/rows";
import { jobPath, runPath } from "./link";
import { Told } from "./told";
import { reasonInWords, triggerInWords } from "./words";
import "../style/run.css";

export type RunInList = Pick<
  Shape<"RunRow">,
  "runId" | "jobId" | "state" | "reason" | "trigger" | "fireAt" | "attempt" | "startedAt" | "endedAt"
>;

export interface Selection {
  has: (run: RunInList) => boolean;
  toggle: (run: RunInList) => void;
}

interface RunRowsProps {
  runs: readonly RunInList[];
  label: string;
  /** Not where all of them are of one job that the page is about. */
  withJob?: boolean;
  select?: Selection;
  most?: string;
  more?: boolean;
  fetchMore?: () => void;
}

export function keyOfRun(run: { jobId: string; runId: string }): string {
  return `${run.jobId}/${run.runId}`;
}

export function RunRows({ runs, label, withJob = false, select, most, more, fetchMore }: RunRowsProps) {
  const isNarrow = useMedia("(max-width: 820px)");
  return (
    <div className="run-rows" data-job={withJob} data-select={select !== undefined}>
      {!isNarrow && <Heads withJob={withJob} select={select !== undefined} />}
      <Rows
        items={runs}
        height={isNarrow ? 84 : 40}
        label={label}
        keyOf={keyOfRun}
        most={most}
        more={more}
        fetchMore={fetchMore}
      >
        {(run) => <RunRow run={run} withJob={withJob} select={select} />}
      </Rows>
    </div>
  );
}

function Heads({ withJob, select }: { withJob: boolean; select: boolean }) {
  return (
    <div className="run-row heads" aria-hidden="true">
      {select && <span />}
      <span>State</span>
      {withJob && <span>Job</span>}
      <span>Fire time</span>
      <span>Trigger</span>
      <span>Started</span>
      <span>Took</span>
      <span>Reason</span>
    </div>
  );
}

function RunRow({ run, withJob, select }: { run: RunInList; withJob: boolean; select?: Selection }) {
  const reason = reasonInWords(run.reason);
  return (
    <div className="run-row">
      {select && (
        <input
          type="checkbox"
          className="tick"
          checked={select.has(run)}
          onChange={() => select.toggle(run)}
          aria-label={`Select the run ${run.runId} of ${run.jobId}`}
        />
      )}
      <span className="state">
        <StatePill state={run.state} />
      </span>
      {withJob && (
        <Link href={jobPath(run.jobId)} className="job cut" title={run.jobId}>
          {run.jobId}
        </Link>
      )}
      <Link href={runPath(run.jobId, run.runId)} className="fire cut">
        <Moment at={run.fireAt} />
      </Link>
      <span className="trigger soft cut">
        {triggerInWords(run.trigger)}
        {run.attempt > 1 && <span title={`Attempt ${run.attempt}`}> · {run.attempt}×</span>}
      </span>
      <span className="started soft cut">
        {run.startedAt ? <Moment at={run.startedAt} relative /> : <span className="faint">Not started</span>}
      </span>
      <span className="took">
        <Lasted from={run.startedAt} to={run.endedAt} />
      </span>
      <span className="reason soft cut" title={reason || undefined}>
        <Told text={reason} />
      </span>
    </div>
  );
}
