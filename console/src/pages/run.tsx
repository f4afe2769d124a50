/** A run: its tasks as a graph and on a timeline, what each printed and gave, and what one may do about it. */

import { lazy, Suspense } from "react";
import { Link, useParams } from "wouter";
import { useQueryPart, useTitle } from "../lib/hooks";
import { briefly } from "../lib/time";
import { RunActions } from "../run/actions";
import { RunFacts, RunHead } from "../run/head";
import { isEmpty, Json } from "../run/json";
import { jobPath, runPath } from "../run/link";
import { isGraph } from "../run/outcome";
import { Panel } from "../run/panel";
import { Side, useIsWide } from "../run/side";
import type { Run, Task } from "../run/tasks";
import { useRun, type WatchedRun } from "../run/use-run";
import { Why } from "../run/why";
import { Loading, Notice, Sheet, Wrong } from "../ui/parts";
import { Tabs } from "../ui/tabs";
import "../style/run.css";

const Graph = lazy(() => import("../run/graph/graph"));
const Gantt = lazy(() => import("../run/gantt/gantt"));

export default function Page() {
  const { job = "", run: runId = "" } = useParams<{ job: string; run: string }>();
  const watched = useRun(job, runId);
  useTitle(watched.run ? `${job}, ${briefly(watched.run.fireAt)}` : job);
  if (watched.run) return <Whole key={`${job}/${runId}`} run={watched.run} watched={watched} />;
  if (!watched.error) return <Loading lines={8} />;
  return (
    <>
      <Wrong error={watched.error} again={() => void watched.refetch()} />
      <p>
        <Link href={jobPath(job)}>To the job {job}</Link>
      </p>
    </>
  );
}

function Whole({ run, watched }: { run: Run; watched: WatchedRun }) {
  const isSeveral = isGraph(run);
  const [, setTask] = useQueryPart("task");
  return (
    <>
      <RunHead run={run}>
        <RunActions run={run} tasks={watched.tasks} />
      </RunHead>
      <Sheet label="About this run">
        <RunFacts run={run} />
      </Sheet>
      {isSeveral && (
        <Why job={run.jobId} run={run.runId} state={run.state} reason={run.reason} error={run.error} onOpen={setTask} />
      )}
      {isSeveral ? <Several run={run} watched={watched} /> : <Single run={run} tasks={watched.tasks} />}
      <Values run={run} isSeveral={isSeveral} />
    </>
  );
}

function Single({ run, tasks }: { run: Run; tasks: readonly Task[] | undefined }) {
  const task = tasks?.[0];
  if (!task) return null;
  return (
    <Sheet label="The task">
      <Panel run={run} task={task} tasks={tasks} onOpen={() => undefined} isWhole />
    </Sheet>
  );
}

function Several({ run, watched }: { run: Run; watched: WatchedRun }) {
  const [view] = useQueryPart("view", "graph");
  const [chosen, setChosen] = useQueryPart("task");
  const isWide = useIsWide();
  const { tasks } = watched;
  const task = chosen ? tasks?.find(({ id }) => id === chosen) : undefined;
  const shown = view === "timeline" ? "timeline" : "graph";
  const own = runPath(run.jobId, run.runId, chosen);
  const tabs = [
    { label: "Graph", href: own, here: shown === "graph" },
    { label: "Timeline", href: `${own}${chosen ? "&" : "?"}view=timeline`, here: shown === "timeline" },
  ];
  return (
    <div className="run-split" data-beside={isWide && task !== undefined}>
      <div className="stack run-views">
        <Tabs label="Views of the tasks" tabs={tabs} />
        {chosen && tasks && !task && <Notice tone="warn">This run has no task {chosen}.</Notice>}
        {watched.tasksError ? <Wrong error={watched.tasksError} /> : null}
        {!tasks && !watched.tasksError && <Fetching run={run} fetched={watched.fetched} />}
        {tasks && (
          <Suspense fallback={<Loading />}>
            {shown === "graph" ? (
              <Graph tasks={tasks} chosen={chosen} onOpen={setChosen} />
            ) : (
              <Gantt run={run} tasks={tasks} chosen={chosen} onOpen={setChosen} />
            )}
          </Suspense>
        )}
      </div>
      {task && (
        <Side title={task.id} onClose={() => setChosen("")}>
          <Panel key={task.id} run={run} task={task} tasks={tasks} onOpen={setChosen} />
        </Side>
      )}
    </div>
  );
}

function Fetching({ run, fetched }: { run: Run; fetched: number }) {
  const total = run.taskCounts?.total ?? 0;
  return (
    <div className="stack">
      <p className="soft" role="status">
        Fetching its {total.toLocaleString()} tasks{fetched ? `: ${fetched.toLocaleString()} so far` : ""}.
      </p>
      <Loading />
    </div>
  );
}

function Values({ run, isSeveral }: { run: Run; isSeveral: boolean }) {
  const hasParams = !isEmpty(run.params);
  const hasOutput = isSeveral && !isEmpty(run.output);
  if (!hasParams && !hasOutput) return null;
  return (
    <div className="columns">
      {hasParams && (
        <Sheet title="Parameters">
          <Json value={run.params} what="the parameters" />
        </Sheet>
      )}
      {hasOutput && (
        <Sheet title="Output">
          <Json value={run.output} what="the output" />
        </Sheet>
      )}
    </div>
  );
}
