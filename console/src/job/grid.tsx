/** The last runs of a job beside each other, and what became of each of their tasks. */

import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { hasEnded, lookOf } from "../lib/states";
import { inFull } from "../lib/time";
import { Empty, Found, Sheet } from "../ui/parts";
import { Durations } from "./durations";

type Run = Shape<"Run">;
type Task = Shape<"TaskRun">;

const SHOWN = 25;
const TASKS_MAX = 200;

export function useLastRuns(job: string, limit: number) {
  return useQuery({
    queryKey: [...of.jobRuns(job), "last", limit],
    queryFn: async () =>
      (await answer(api.GET("/jobs/{job}/runs", { params: { path: { job }, query: { limit } } }))).items,
  });
}

export function History({ job }: { job: string }) {
  const runs = useLastRuns(job, SHOWN);
  return (
    <Found query={runs}>
      {(found) =>
        found.length === 0 ? (
          <Sheet label="History">
            <Empty title="No runs yet">
              <p>They appear here, beside each other, as the schedule fires or somebody runs the job.</p>
            </Empty>
          </Sheet>
        ) : (
          <>
            <Sheet title="How long they took">
              <Durations job={job} runs={[...found].reverse()} />
            </Sheet>
            <Sheet title="Runs and their tasks" flush>
              <Grid job={job} runs={[...found].reverse()} />
            </Sheet>
          </>
        )
      }
    </Found>
  );
}

function Grid({ job, runs }: { job: string; runs: readonly Run[] }) {
  const fetched = useQueries({
    queries: runs.map((run) => ({
      queryKey: [...of.run(job, run.runId), "grid"],
      queryFn: async () =>
        (
          await answer(
            api.GET("/jobs/{job}/runs/{run}/tasks", {
              params: { path: { job, run: run.runId }, query: { limit: TASKS_MAX } },
            }),
          )
        ).items,
      staleTime: hasEnded(run.state) ? Number.POSITIVE_INFINITY : 5_000,
    })),
  });
  const tasksOf = (at: number): readonly Task[] => (fetched[at]?.data ?? []).filter((task) => !task.id.includes("["));
  const names = [...new Set(runs.flatMap((_, at) => tasksOf(at).map((task) => task.id)))];
  return (
    <div className="scroll-x">
      <table className="grid">
        <thead>
          <tr>
            <th scope="col">Task</th>
            {runs.map((run) => (
              <th key={run.runId} scope="col">
                <Box state={run.state} href={`/jobs/${job}/runs/${run.runId}`} title={`Run of ${inFull(run.fireAt)}`} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <th scope="row" className="cut" title={name}>
                {name}
              </th>
              {runs.map((run, at) => {
                const task = tasksOf(at).find((one) => one.id === name);
                const href = `/jobs/${job}/runs/${run.runId}?task=${encodeURIComponent(name)}`;
                return (
                  <td key={run.runId}>
                    {task && (
                      <Box state={task.state} href={href} title={`${name} in the run of ${inFull(run.fireAt)}`} />
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Box({ state, href, title }: { state: string; href: string; title: string }) {
  const { tone, label, glyph } = lookOf(state);
  return (
    <Link href={href} className="box" data-tone={tone} title={`${title}: ${label}`} aria-label={`${title}: ${label}`}>
      <span aria-hidden="true">{glyph}</span>
    </Link>
  );
}
