/** Backfills across jobs: those that go on, and those that ended lately. */

import { useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { of } from "../api/cache";
import { answer, api } from "../api/client";
import { BeginBackfill } from "../backfill/begin";
import { BackfillTable } from "../backfill/list";
import { useQueryPart, useSettled, useTitle } from "../lib/hooks";
import { useMay } from "../lib/roles";
import { Dialog } from "../ui/dialog";
import { TextField } from "../ui/form";
import { Button, Empty, Found, Loading, PageHead, SearchBox, Sheet } from "../ui/parts";

const JOBS = 50;

/** The API lists the backfills of a job: so the jobs are named first, those that match what is searched for. */
export default function BackfillsPage() {
  useTitle("Backfills");
  const [text, setText] = useQueryPart("search");
  const [choosing, setChoosing] = useState(false);
  const may = useMay("operator");
  const search = useSettled(text);
  const jobs = useQuery({
    queryKey: [...of.jobs, "names", search],
    queryFn: async () =>
      (await answer(api.GET("/jobs", { params: { query: { limit: JOBS, search: search || undefined } as object } })))
        .items,
  });
  const lists = useQueries({
    queries: (jobs.data ?? []).map((job) => ({
      queryKey: [...of.job(job.jobId), "backfills"],
      queryFn: async () =>
        (
          await answer(
            api.GET("/jobs/{job}/backfills", { params: { path: { job: job.jobId }, query: { limit: 100 } } }),
          )
        ).items,
    })),
  });
  const all = lists.flatMap((list) => list.data ?? []).sort((a, b) => b.createdAt.localeCompare(a.createdAt));
  const isWaiting = lists.some((list) => list.isPending);
  return (
    <>
      <PageHead title="Backfills" below="Fires that are made up for, and stretches of time that are run again.">
        {may && (
          <Button kind="primary" icon="backfill" onClick={() => setChoosing(true)}>
            Backfill a job
          </Button>
        )}
      </PageHead>
      <div className="row wrap">
        <SearchBox label="Search jobs" value={text} onChange={setText} />
      </div>
      <Sheet label="Backfills" flush>
        <Found query={jobs}>
          {() =>
            isWaiting ? (
              <div className="inside">
                <Loading />
              </div>
            ) : all.length === 0 ? (
              <Empty title="No backfills">
                <p>When fires are missing or failed, a backfill makes up for them.</p>
              </Empty>
            ) : (
              <BackfillTable backfills={all} named />
            )
          }
        </Found>
      </Sheet>
      {choosing && <Choose names={(jobs.data ?? []).map((job) => job.jobId)} onClose={() => setChoosing(false)} />}
    </>
  );
}

function Choose({ names, onClose }: { names: readonly string[]; onClose: () => void }) {
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  if (chosen !== null) return <BeginBackfill job={chosen} onClose={onClose} />;
  return (
    <Dialog
      title="Backfill a job"
      onClose={onClose}
      onSubmit={() => setChosen(name.trim())}
      foot={
        <Button type="submit" kind="primary" disabled={!name.trim()}>
          Go on
        </Button>
      }
    >
      <TextField
        label="Job"
        list="names-of-jobs"
        autoFocus
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <datalist id="names-of-jobs">
        {names.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </Dialog>
  );
}
