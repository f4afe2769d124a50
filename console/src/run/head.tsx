/** What a run is, at a glance. */

import type { ReactNode } from "react";
import { Link } from "wouter";
import { hasEnded } from "../lib/states";
import { inFull, inUtc, zone } from "../lib/time";
import { Lasted, Moment, PageHead, Progress, StatePill } from "../ui/parts";
import { jobPath, namedRun, runPath, versionsPath } from "./link";
import { isGraph } from "./outcome";
import type { Run } from "./tasks";
import { Told } from "./told";
import { counted, reasonInWords, triggerInWords } from "./words";

export function RunHead({ run, children }: { run: Run; children: ReactNode }) {
  const reason = reasonInWords(run.reason);
  return (
    <PageHead
      title={
        <time dateTime={run.fireAt} title={`${inUtc(run.fireAt)} · shown in ${zone}`}>
          {inFull(run.fireAt)}
        </time>
      }
      crumbs={[
        { label: "Jobs", href: "/jobs" },
        { label: run.jobId, href: jobPath(run.jobId) },
        { label: "Runs", href: jobPath(run.jobId, "runs") },
      ]}
      below={
        <>
          <StatePill state={run.state} />
          {reason && (
            <span>
              <Told text={reason} />
            </span>
          )}
        </>
      }
    >
      {children}
    </PageHead>
  );
}

export function RunFacts({ run }: { run: Run }) {
  const rerunOf = run.rerunOf;
  const by = typeof run.startedBy === "string" ? namedRun(run.startedBy) : null;
  return (
    <>
      <dl className="run-facts">
        <Fact name="Fire time">
          <Moment at={run.fireAt} />
        </Fact>
        <Fact name="Trigger">{triggerInWords(run.trigger)}</Fact>
        <Fact name="Started">
          <Moment at={run.startedAt} />
        </Fact>
        <Fact name={hasEnded(run.state) ? "Took" : "Takes so far"}>
          <Lasted from={run.startedAt} to={run.endedAt} />
        </Fact>
        {run.version !== null && (
          <Fact name="Version">
            <Link href={versionsPath(run.jobId)}>{run.version}</Link>
          </Fact>
        )}
        {!isGraph(run) && <Fact name="Attempt">{run.attempt || "–"}</Fact>}
        {rerunOf && (
          <Fact name="Rerun of">
            <Link href={runPath(run.jobId, rerunOf)} title={rerunOf}>
              An earlier run
            </Link>
          </Fact>
        )}
        {by && (
          <Fact name="Started by">
            <Link href={runPath(by.job, by.run, by.task)}>{by.job}</Link>
          </Fact>
        )}
        {run.backfillId && (
          <Fact name="Backfill">
            <Link href={`${jobPath(run.jobId)}/backfills/${encodeURIComponent(run.backfillId)}`} title={run.backfillId}>
              Its backfill
            </Link>
          </Fact>
        )}
        {run.intervalStart && (
          <Fact name="Stands for">
            <Moment at={run.intervalStart} /> to <Moment at={run.intervalEnd} />
          </Fact>
        )}
        {run.cost && (
          <Fact name="Cost">
            <span title={basisOf(run.cost)}>{dollarsOf(run.cost)}</span>
          </Fact>
        )}
        {typeof run.note === "string" && run.note && <Fact name="Note">{run.note}</Fact>}
      </dl>
      {run.progress !== null && !hasEnded(run.state) && (
        <div className="row run-progress">
          <div className="grow">
            <Progress value={run.progress} label="Progress of the run" />
          </div>
          <span className="number">{run.progress} %</span>
        </div>
      )}
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

type Cost = NonNullable<Run["cost"]>;

function dollarsOf({ dollars, charged }: Cost): string {
  if (!charged) return "Nothing";
  if (dollars === 0) return "$0";
  return dollars < 0.01 ? `$${dollars.toPrecision(2)}` : `$${dollars.toFixed(2)}`;
}

function basisOf({ basis, charged, writeUnits, transitions }: Cost): string {
  if (!charged) return basis;
  return `${basis} ${counted(writeUnits, "write unit")}, ${counted(transitions, "transition")}.`;
}
