/** The backfills of a job, and the form that begins another. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { of } from "../api/cache";
import { answer, api } from "../api/client";
import { useMay } from "../lib/roles";
import { Actor } from "../ui/actor";
import { Button, Empty, Found, Moment, Progress, Sheet, StatePill } from "../ui/parts";
import { BeginBackfill } from "./begin";
import { type Backfill, howFar, stretch } from "./words";

export function useBackfills(job: string) {
  return useQuery({
    queryKey: [...of.job(job), "backfills"],
    queryFn: async () =>
      (await answer(api.GET("/jobs/{job}/backfills", { params: { path: { job }, query: { limit: 100 } } }))).items,
    refetchInterval: (query) => (query.state.data?.some((one) => one.state === "running") ? 3_000 : false),
  });
}

export function BackfillsOf({ job }: { job: string }) {
  const backfills = useBackfills(job);
  const [beginning, setBeginning] = useState(false);
  const may = useMay("operator");
  const begin = may && (
    <Button kind="primary" icon="backfill" onClick={() => setBeginning(true)}>
      Backfill
    </Button>
  );
  return (
    <>
      <Sheet title="Backfills" actions={begin} flush>
        <Found query={backfills}>
          {(found) =>
            found.length === 0 ? (
              <Empty title="No backfills yet">
                <p>A backfill makes up for fires that are missing or failed, or runs a stretch of time again.</p>
              </Empty>
            ) : (
              <BackfillTable backfills={found} />
            )
          }
        </Found>
      </Sheet>
      {beginning && <BeginBackfill job={job} onClose={() => setBeginning(false)} />}
    </>
  );
}

export function BackfillTable({ backfills, named = false }: { backfills: readonly Backfill[]; named?: boolean }) {
  return (
    <div className="scroll-x">
      <table className="table">
        <thead>
          <tr>
            {named && <th scope="col">Job</th>}
            <th scope="col">Stretch</th>
            <th scope="col">State</th>
            <th scope="col">How far</th>
            <th scope="col">Begun</th>
          </tr>
        </thead>
        <tbody>
          {backfills.map((one) => (
            <tr key={one.backfillId}>
              {named && (
                <td>
                  <Link href={`/jobs/${one.jobId}`}>{one.jobId}</Link>
                </td>
              )}
              <td>
                <Link href={`/jobs/${one.jobId}/backfills/${one.backfillId}`}>{stretch(one.from, one.to)}</Link>
              </td>
              <td>
                <StatePill state={one.state} title={one.reason} />
              </td>
              <td>
                <div className="stack" style={{ gap: 4, minWidth: 140 }}>
                  <Progress value={one.progress} label={`Progress of the backfill of ${one.jobId}`} />
                  <span className="soft">{howFar(one)}</span>
                </div>
              </td>
              <td>
                <Moment at={one.createdAt} /> by <Actor id={one.createdBy} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
