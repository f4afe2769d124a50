/** A job: at a glance, its runs, its ledger, its backfills and its versions. */

import { useQuery } from "@tanstack/react-query";
import { useLocation, useParams } from "wouter";
import { of } from "../api/cache";
import { answer, api } from "../api/client";
import { useTopic } from "../api/live";
import { ApiError } from "../api/problem";
import { BackfillsOf } from "../backfill/list";
import { Calendar } from "../job/calendar";
import { Definition } from "../job/definition";
import { History } from "../job/grid";
import { RunsOfJob } from "../job/runs";
import { Summary } from "../job/summary";
import { JobActions } from "../jobs/actions";
import { Versions } from "../jobs/versions";
import { useTitle } from "../lib/hooks";
import { Empty, Found, LinkButton, PageHead, StatePill } from "../ui/parts";
import { Tabs } from "../ui/tabs";
import "../style/job.css";

const TABS: readonly [string, string][] = [
  ["", "Overview"],
  ["runs", "Runs"],
  ["history", "History"],
  ["calendar", "Calendar"],
  ["backfills", "Backfills"],
  ["definition", "Definition"],
  ["versions", "Versions"],
];

export default function JobPage() {
  const { job: name = "", tab = "" } = useParams<{ job: string; tab?: string }>();
  const [, go] = useLocation();
  useTitle(name);
  useTopic(`job:${name}`);
  const job = useQuery({
    queryKey: of.job(name),
    queryFn: () => answer(api.GET("/jobs/{job}", { params: { path: { job: name } } })),
  });
  if (job.error instanceof ApiError && job.error.status === 404) {
    return (
      <Empty title={`There is no job ${name}`}>
        <p>It may have been deleted, or be in another namespace.</p>
        <LinkButton href="/jobs">All jobs</LinkButton>
      </Empty>
    );
  }
  return (
    <Found query={job}>
      {(found) => (
        <>
          <PageHead
            title={found.name}
            crumbs={[{ label: "Jobs", href: "/jobs" }, { label: found.name }]}
            below={
              <>
                <StatePill state={found.status} />
                {typeof found.description === "string" && <span>{found.description}</span>}
              </>
            }
          >
            <JobActions job={found} />
          </PageHead>
          <Tabs
            label="Views of this job"
            tabs={TABS.map(([id, label]) => ({ label, here: id === tab, href: `/jobs/${name}${id && `/${id}`}` }))}
          />
          {tab === "" && <Summary job={found} openDay={(day) => go(`/jobs/${name}/calendar?day=${day}`)} />}
          {tab === "runs" && <RunsOfJob job={name} />}
          {tab === "history" && <History job={name} />}
          {tab === "calendar" && <Calendar job={name} />}
          {tab === "backfills" && <BackfillsOf job={name} />}
          {tab === "definition" && <Definition job={found} />}
          {tab === "versions" && <Versions job={name} />}
        </>
      )}
    </Found>
  );
}
