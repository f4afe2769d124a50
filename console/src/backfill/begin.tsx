/** Begins a backfill: first it says what that comes to, then it is done. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { cache, of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { ApiError } from "../api/problem";
import { useSettled } from "../lib/hooks";
import { inFull, zone } from "../lib/time";
import { Dialog } from "../ui/dialog";
import { CheckField, SelectField, TextField } from "../ui/form";
import { Button, Loading, Notice, Wrong } from "../ui/parts";
import { doing } from "../ui/toasts";
import { WHAT } from "./words";

type Body = Shape<"BackfillBody">;

const DAY_MS = 86_400_000;

/** For an input of the kind datetime-local, which knows no zone: the user's. */
function asInput(at: Date): string {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function fromInput(text: string): string | null {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}

export function BeginBackfill({ job, onClose }: { job: string; onClose: () => void }) {
  const [, go] = useLocation();
  const [from, setFrom] = useState(() => asInput(new Date(Date.now() - DAY_MS)));
  const [to, setTo] = useState(() => asInput(new Date()));
  const [only, setOnly] = useState<Body["only"]>("missing");
  const [order, setOrder] = useState<Body["order"]>("oldest");
  const [maxActive, setMaxActive] = useState("3");
  const [collapse, setCollapse] = useState(false);
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const begin = fromInput(from);
  const end = fromInput(to);
  const body = {
    from: begin ?? "",
    to: end ?? "",
    only,
    order,
    maxActive: Number(maxActive),
    collapse,
    note,
  } as Body;
  const asked = useSettled(JSON.stringify(body), 300);
  const estimate = useQuery({
    queryKey: ["job", job, "estimate", asked],
    queryFn: async () =>
      (await answer(
        api.POST("/jobs/{job}/backfills", {
          params: { path: { job } },
          body: { ...(JSON.parse(asked) as Body), dryRun: true },
        }),
      )) as Shape<"BackfillEstimate">,
    enabled: begin !== null && end !== null,
    retry: false,
    gcTime: 0,
  });
  const wrong = (field: string) =>
    estimate.error instanceof ApiError
      ? (estimate.error.fields.find((one) => one.path === field)?.message ?? null)
      : null;
  const isCurrent = asked === JSON.stringify(body) && estimate.data !== undefined;
  const start = async () => {
    setBusy(true);
    const done = await doing("The backfill has begun.", async () => {
      const made = (await answer(
        api.POST("/jobs/{job}/backfills", { params: { path: { job } }, body }),
      )) as Shape<"Backfill">;
      await cache.invalidateQueries({ queryKey: of.job(job) });
      go(`/jobs/${job}/backfills/${made.backfillId}`);
    });
    setBusy(false);
    if (done) onClose();
  };
  return (
    <Dialog
      title={`Backfill ${job}`}
      onClose={onClose}
      onSubmit={() => void start()}
      foot={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button type="submit" kind="primary" busy={busy} disabled={!isCurrent || estimate.data?.runs === 0}>
            {estimate.data ? `Make ${estimate.data.runs} ${estimate.data.runs === 1 ? "run" : "runs"}` : "Begin"}
          </Button>
        </>
      }
    >
      <div className="columns" style={{ gap: 12 }}>
        <TextField
          label="From"
          type="datetime-local"
          value={from}
          wrong={begin === null ? "Choose a day and a time." : wrong("from")}
          onChange={(event) => setFrom(event.target.value)}
        />
        <TextField
          label="To"
          type="datetime-local"
          value={to}
          hint={`In ${zone}; this moment is not part of it.`}
          wrong={end === null ? "Choose a day and a time." : wrong("to")}
          onChange={(event) => setTo(event.target.value)}
        />
      </div>
      <SelectField
        label="Which fires"
        value={only}
        choices={Object.entries(WHAT).map(([value, label]) => ({ value, label }))}
        onChange={(event) => setOnly(event.target.value as Body["only"])}
      />
      <div className="columns" style={{ gap: 12 }}>
        <SelectField
          label="Order"
          value={order}
          choices={[
            { value: "oldest", label: "Oldest first" },
            { value: "newest", label: "Newest first" },
          ]}
          onChange={(event) => setOrder(event.target.value as Body["order"])}
        />
        <TextField
          label="At most so many at once"
          type="number"
          min={1}
          value={maxActive}
          wrong={wrong("maxActive")}
          onChange={(event) => setMaxActive(event.target.value)}
        />
      </div>
      <CheckField label="One run for the whole stretch" checked={collapse} onChange={setCollapse} />
      <TextField label="Note" value={note} onChange={(event) => setNote(event.target.value)} />
      <Estimate query={estimate} />
    </Dialog>
  );
}

function Estimate({ query }: { query: { data?: Shape<"BackfillEstimate">; error: unknown } }) {
  if (query.error) return <Wrong error={query.error} />;
  const found = query.data;
  if (!found) return <Loading lines={2} />;
  if (found.runs === 0) return <Notice>Nothing is to be made up for in this stretch.</Notice>;
  return (
    <Notice tone="busy">
      <p>
        {found.count} {found.count === 1 ? "fire" : "fires"}
        {found.firstFireAt && found.lastFireAt && (
          <>
            , from {inFull(found.firstFireAt)} to {inFull(found.lastFireAt)}
          </>
        )}
        , in {found.runs} {found.runs === 1 ? "run" : "runs"}.
      </p>
      <p className="soft" title={found.cost.basis}>
        About ${found.cost.dollars.toFixed(found.cost.dollars < 0.01 ? 6 : 2)} on AWS.
      </p>
    </Notice>
  );
}
