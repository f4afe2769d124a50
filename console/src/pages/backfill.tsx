/** One backfill: how far it is, what runs now, and a way to hold or end it. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams } from "wouter";
import { cache, of } from "../api/cache";
import { answer, api } from "../api/client";
import { useTopic } from "../api/live";
import { type Backfill, howFar, stretch, WHAT } from "../backfill/words";
import { useTitle } from "../lib/hooks";
import { useMay } from "../lib/roles";
import { Actor } from "../ui/actor";
import { Confirm } from "../ui/dialog";
import { CheckField } from "../ui/form";
import { Button, Found, Lasted, Moment, PageHead, Progress, Sheet, StatePill } from "../ui/parts";
import { doing } from "../ui/toasts";

export default function BackfillPage() {
  const { job = "", backfill: id = "" } = useParams<{ job: string; backfill: string }>();
  useTitle(`Backfill of ${job}`);
  useTopic(`job:${job}`);
  const path = { job, backfill: id };
  const backfill = useQuery({
    queryKey: [...of.job(job), "backfill", id],
    queryFn: () => answer(api.GET("/jobs/{job}/backfills/{backfill}", { params: { path } })),
    refetchInterval: (query) => (query.state.data?.state === "running" ? 2_000 : false),
  });
  return (
    <Found query={backfill}>
      {(found) => (
        <>
          <PageHead
            title={`Backfill of ${job}`}
            crumbs={[
              { label: "Jobs", href: "/jobs" },
              { label: job, href: `/jobs/${job}` },
              { label: "Backfills", href: `/jobs/${job}/backfills` },
            ]}
            below={
              <>
                <StatePill state={found.state} />
                {found.reason && <span>{found.reason}</span>}
              </>
            }
          >
            <Actions backfill={found} />
          </PageHead>
          <Sheet title="How far it is">
            <div className="stack">
              <Progress value={found.progress} label="Progress" />
              <p>{howFar(found)}</p>
            </div>
          </Sheet>
          <div className="columns">
            <Sheet title="What it does">
              <dl className="facts">
                <dt>Stretch</dt>
                <dd>{stretch(found.from, found.to)}</dd>
                <dt>Fires</dt>
                <dd>{WHAT[found.only] ?? found.only}</dd>
                <dt>Runs</dt>
                <dd>
                  {found.collapse
                    ? "one for the whole stretch"
                    : `at most ${found.maxActive} at once, ${found.order} first`}
                </dd>
                <dt>Begun</dt>
                <dd>
                  <Moment at={found.createdAt} /> by <Actor id={found.createdBy} />
                </dd>
                <dt>Takes</dt>
                <dd>
                  <Lasted from={found.createdAt} to={found.endedAt} />
                </dd>
                {found.note && (
                  <>
                    <dt>Note</dt>
                    <dd>{found.note}</dd>
                  </>
                )}
              </dl>
            </Sheet>
            <Sheet title="Runs now">
              {found.active.length === 0 ? (
                <p className="soft">None of its runs is under way.</p>
              ) : (
                <ul className="stack">
                  {found.active.map((run) => (
                    <li key={run}>
                      <Link href={`/jobs/${job}/runs/${run}`} className="mono">
                        {run}
                      </Link>
                    </li>
                  ))}
                </ul>
              )}
            </Sheet>
          </div>
        </>
      )}
    </Found>
  );
}

function Actions({ backfill }: { backfill: Backfill }) {
  const may = useMay("operator");
  const [cancelling, setCancelling] = useState(false);
  const [running, setRunning] = useState(false);
  const path = { job: backfill.jobId, backfill: backfill.backfillId };
  const refresh = () => cache.invalidateQueries({ queryKey: of.job(backfill.jobId) });
  if (!may || !["running", "paused"].includes(backfill.state)) return null;
  const toggle = () =>
    backfill.state === "running"
      ? doing("It puts no more runs.", async () => {
          await answer(api.POST("/jobs/{job}/backfills/{backfill}/pause", { params: { path }, body: {} as never }));
          await refresh();
        })
      : doing("It goes on.", async () => {
          await answer(api.POST("/jobs/{job}/backfills/{backfill}/resume", { params: { path }, body: {} as never }));
          await refresh();
        });
  return (
    <>
      <Button icon={backfill.state === "running" ? "pause" : "play"} onClick={() => void toggle()}>
        {backfill.state === "running" ? "Pause" : "Resume"}
      </Button>
      <Button kind="danger" icon="stop" onClick={() => setCancelling(true)}>
        Cancel
      </Button>
      {cancelling && (
        <Confirm
          title="Cancel this backfill?"
          does="Cancel it"
          danger
          onClose={() => setCancelling(false)}
          run={async () => {
            await answer(
              api.POST("/jobs/{job}/backfills/{backfill}/cancel", { params: { path }, body: { running } as never }),
            );
            await refresh();
          }}
        >
          <p>What has not started never does. What it has made stays.</p>
          <CheckField label="End the runs that are under way too" checked={running} onChange={setRunning} />
        </Confirm>
      )}
    </>
  );
}
