/** A job at a glance: what it is, when it fires next, how its last runs ended. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { lookOf } from "../lib/states";
import { inFull } from "../lib/time";
import { Actor } from "../ui/actor";
import { Found, Lasted, Moment, Sheet, StatePill, Tag } from "../ui/parts";
import { Year } from "./calendar";
import { Fires } from "./fires";
import { useLastRuns } from "./grid";
import { WhyNot } from "./why";

type Job = Shape<"Job">;

export function zoneOf(job: Job): string {
  const schedule = job.schedule as { timezone?: string } | string | undefined;
  return (typeof schedule === "object" && schedule?.timezone) || "UTC";
}

export function Summary({ job, openDay }: { job: Job; openDay: (day: string) => void }) {
  return (
    <>
      <WhyNot job={job.jobId} />
      <div className="columns">
        <About job={job} />
        <LastRuns job={job.jobId} />
      </div>
      <Year job={job.jobId} chosen={null} choose={openDay} />
      <Fires job={job.jobId} count={10} zoneOfJob={zoneOf(job)} />
    </>
  );
}

function About({ job }: { job: Job }) {
  const tags = (job.tags as string[] | undefined) ?? [];
  return (
    <Sheet title="About">
      <dl className="facts">
        <dt>Schedule</dt>
        <dd>{inWords(job.schedule)}</dd>
        <dt>Next fire</dt>
        <dd>{job.nextFireAt ? <Moment at={job.nextFireAt} relative /> : "none"}</dd>
        <dt>Version</dt>
        <dd>
          <Link href={`/jobs/${job.jobId}/versions`} className="in-text">
            {job.version}
          </Link>
          , since <Moment at={job.updatedAt} />
        </dd>
        <dt>Created</dt>
        <dd>
          <Moment at={job.createdAt} /> by <Actor id={job.createdBy} />
        </dd>
        <Cost job={job.jobId} />
        {tags.length > 0 && (
          <>
            <dt>Tags</dt>
            <dd className="row wrap">
              {tags.map((tag) => (
                <Link key={tag} href={`/jobs?tag=${encodeURIComponent(tag)}`} className="cut">
                  <Tag>{tag}</Tag>
                </Link>
              ))}
            </dd>
          </>
        )}
      </dl>
    </Sheet>
  );
}

/** A schedule in the words it was written in. */
export function inWords(schedule: unknown): string {
  if (schedule === undefined || schedule === null) return "none: it runs when somebody or something runs it";
  if (typeof schedule === "string") return `${schedule} (UTC)`;
  const { cron, every, at, after, datasets, events, timezone } = schedule as Record<string, unknown>;
  if (cron) return `${cron} (${timezone ?? "UTC"})`;
  if (every) return `every ${every}`;
  if (at) return `once, ${inFull(String(at))}`;
  if (after) return `after ${namesIn(after)}`;
  if (datasets) return `when datasets are updated: ${namesIn(datasets)}`;
  if (events) return "on events";
  return JSON.stringify(schedule);
}

function namesIn(value: unknown): string {
  if (Array.isArray(value)) return value.join(", ");
  const { all, any } = value as { all?: string[]; any?: string[] };
  return all ? all.join(" and ") : any ? any.join(" or ") : JSON.stringify(value);
}

function Cost({ job }: { job: string }) {
  const withCost = useQuery({
    queryKey: [...of.job(job), "cost"],
    queryFn: () => answer(api.GET("/jobs/{job}", { params: { path: { job }, query: { include: "cost" as never } } })),
    retry: false,
    staleTime: 300_000,
  });
  const cost = withCost.data?.costPerMonth as { dollars?: number; basis?: string } | undefined;
  if (typeof cost?.dollars !== "number") return null;
  return (
    <>
      <dt>Cost</dt>
      <dd title={cost.basis}>about ${cost.dollars.toFixed(2)} a month</dd>
    </>
  );
}

function LastRuns({ job }: { job: string }) {
  const runs = useLastRuns(job, 10);
  return (
    <Sheet title="Last runs" actions={<Link href={`/jobs/${job}/runs`}>All runs</Link>} flush>
      <Found query={runs}>
        {(found) =>
          found.length === 0 ? (
            <p className="inside soft">It has not run yet.</p>
          ) : (
            <div className="scroll-x">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Fire time</th>
                    <th scope="col">State</th>
                    <th scope="col">Took</th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((run) => (
                    <tr key={run.runId}>
                      <td>
                        <Link href={`/jobs/${job}/runs/${run.runId}`} title={lookOf(run.state).label}>
                          <Moment at={run.fireAt} />
                        </Link>
                      </td>
                      <td>
                        <StatePill state={run.state} title={run.reason} />
                      </td>
                      <td>
                        <Lasted from={run.startedAt} to={run.endedAt} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Found>
    </Sheet>
  );
}
