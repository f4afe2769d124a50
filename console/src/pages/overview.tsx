/** What runs now, what failed lately, what is late, and what comes next. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { useTopic } from "../api/live";
import { useTitle } from "../lib/hooks";
import { useMay } from "../lib/roles";
import type { RunState } from "../lib/states";
import { fromNow, lasting } from "../lib/time";
import { BriefRuns } from "../overview/brief-runs";
import { Hours } from "../overview/hours";
import { Figure } from "../overview/number";
import { Empty, Found, LinkButton, Moment, PageHead, Sheet } from "../ui/parts";
import "../style/overview.css";

/** Sums of a day are dear where there are many runs; what runs now is told live. */
const AGAIN_MS = 30_000;
const SHOWN = 8;

export default function OverviewPage() {
  useTitle("");
  useTopic("runs");
  const stats = useQuery({
    queryKey: [...of.overview, "stats"],
    queryFn: () => answer(api.GET("/stats")),
    refetchInterval: AGAIN_MS,
  });
  return (
    <>
      <PageHead title="Overview" />
      <Found query={stats}>{(found) => (found.jobs === 0 ? <Welcome /> : <Everything stats={found} />)}</Found>
    </>
  );
}

function Welcome() {
  const may = useMay("editor");
  return (
    <Sheet label="Welcome">
      <Empty title="No jobs yet">
        <p>
          A job is what to run and when: a command, a function, a container, or several of them that need each other.
        </p>
        {may && (
          <LinkButton href="/jobs/new" kind="primary" icon="plus">
            Write the first job
          </LinkButton>
        )}
        <p>
          Or apply a folder of files: <code>sweephand apply -f FOLDER</code>
        </p>
      </Empty>
    </Sheet>
  );
}

function Everything({ stats }: { stats: Shape<"Stats"> }) {
  return (
    <>
      <Figures stats={stats} />
      <Sheet title="The last 24 hours">
        <Hours hours={stats.hours} />
      </Sheet>
      <div className="columns">
        <RunsIn state="running" title="Running now" none="Nothing runs at this moment." />
        <Upcoming />
        <RunsIn state="failed" title="Failed lately" none="Nothing has failed." />
        <RunsIn state="queued" title="Waiting to start" none="Nothing waits." />
      </div>
    </>
  );
}

function Figures({ stats }: { stats: Shape<"Stats"> }) {
  const { succeeded, failed } = stats.lastDay;
  const ended = succeeded + failed;
  const rate = ended ? (100 * succeeded) / ended : null;
  return (
    <div className="numbers">
      <Figure label="Running" value={stats.running.toLocaleString()} href="/runs?state=running" />
      <Figure label="Waiting" value={stats.queued.toLocaleString()} href="/runs?state=queued" />
      <Figure
        label="Late"
        value={stats.late.count.toLocaleString()}
        tone={stats.late.count ? "warn" : undefined}
        below={stats.late.oldestAt ? `the oldest was due ${fromNow(stats.late.oldestAt)}` : "all on time"}
      />
      <Figure
        label="Success, 24 h"
        value={rate === null ? "–" : `${rate >= 99.95 || rate === 0 ? rate.toFixed(0) : rate.toFixed(1)} %`}
        tone={failed ? "bad" : undefined}
        below={`${succeeded.toLocaleString()} succeeded, ${failed.toLocaleString()} failed`}
        href="/runs?state=failed"
      />
      <Figure
        label="Start after due time"
        value={inMs(stats.skewMs.p50)}
        below={`99 of 100 within ${inMs(stats.skewMs.p99)}`}
      />
      <Figure
        label="Runs a minute"
        value={stats.throughputPerMinute.toLocaleString(undefined, { maximumFractionDigits: 1 })}
        below={`${stats.jobs.toLocaleString()} ${stats.jobs === 1 ? "job" : "jobs"}`}
        href="/jobs"
      />
    </div>
  );
}

function inMs(ms: number | null | undefined): string {
  return typeof ms === "number" ? lasting(ms) : "–";
}

function RunsIn({ state, title, none }: { state: RunState; title: string; none: string }) {
  const runs = useQuery({
    queryKey: [...of.runs, "overview", state],
    queryFn: async () => (await answer(api.GET("/runs", { params: { query: { state, limit: SHOWN } } }))).items,
  });
  return (
    <Sheet title={title} actions={<Link href={`/runs?state=${state}`}>All of them</Link>} flush>
      <Found query={runs}>
        {(found) => (found.length === 0 ? <p className="inside soft">{none}</p> : <BriefRuns runs={found} />)}
      </Found>
    </Sheet>
  );
}

function Upcoming() {
  const upcoming = useQuery({
    queryKey: [...of.overview, "upcoming"],
    queryFn: () => answer(api.GET("/upcoming", { params: { query: { within: "1h", limit: SHOWN } } })),
    refetchInterval: AGAIN_MS,
  });
  return (
    <Sheet title="Next hour" flush>
      <Found query={upcoming}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="inside soft">Nothing is due within the hour.</p>
          ) : (
            <table className="table">
              <tbody>
                {items.map((fire) => (
                  <tr key={`${fire.jobId}${fire.fireAt}`}>
                    <td>
                      <Link href={`/jobs/${fire.jobId}`}>{fire.jobId}</Link>
                    </td>
                    <td className="right">
                      <Moment at={fire.fireAt} relative />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Found>
    </Sheet>
  );
}
