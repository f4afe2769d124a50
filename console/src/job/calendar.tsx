/** The ledger of a job: a year at a glance, and each fire of a day with what became of it. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { csv, offerFile } from "../lib/download";
import { useQueryPart } from "../lib/hooks";
import { asDay, inUtc, lasting } from "../lib/time";
import { usePages } from "../ui/pages";
import { Button, Empty, Found, Moment, Sheet, StatePill } from "../ui/parts";
import { Rows } from "../ui/rows";
import { HeatLegend, HeatMap, inCounts, type LedgerDay } from "./heat";

const DAY_MS = 86_400_000;

function today(): string {
  return new Date().toISOString().slice(0, 10);
}

export function useLedgerDays(job: string) {
  return useQuery({
    queryKey: [...of.job(job), "ledger", "days"],
    queryFn: async () =>
      (
        await answer(
          api.GET("/jobs/{job}/ledger/days", {
            params: { path: { job }, query: { from: new Date(Date.now() - 371 * DAY_MS).toISOString() } },
          }),
        )
      ).items,
    staleTime: 30_000,
  });
}

export function Year({ job, chosen, choose }: { job: string; chosen: string | null; choose: (day: string) => void }) {
  const days = useLedgerDays(job);
  return (
    <Sheet title="A year of fires">
      <Found query={days} lines={6}>
        {(found) => (
          <div className="stack">
            <p className="soft">{inTotal(found)}</p>
            <HeatMap days={found} until={today()} chosen={chosen} choose={choose} />
            <HeatLegend />
          </div>
        )}
      </Found>
    </Sheet>
  );
}

function inTotal(days: readonly LedgerDay[]): string {
  const total: Record<string, number> = {};
  for (const day of days) {
    for (const [status, count] of Object.entries(day.counts)) total[status] = (total[status] ?? 0) + count;
  }
  const holes = (total.missing ?? 0) + (total.extra ?? 0);
  if (days.length === 0) return "Nothing was due yet. Days appear here as their fires come.";
  return `${inCounts(total)}. ${holes ? "Look at the days in red." : "No holes, no extras."}`;
}

export function Calendar({ job }: { job: string }) {
  const [day, setDay] = useQueryPart("day", today());
  return (
    <>
      <Year job={job} chosen={day} choose={setDay} />
      <Day key={day} job={job} day={day} />
    </>
  );
}

type Line = Shape<"LedgerLine">;

function Day({ job, day }: { job: string; day: string }) {
  const from = `${day}T00:00:00Z`;
  const to = new Date(Date.parse(from) + DAY_MS).toISOString();
  const { query, items, more, fetchMore } = usePages([...of.job(job), "ledger", day], (cursor) =>
    answer(api.GET("/jobs/{job}/ledger", { params: { path: { job }, query: { from, to, limit: 500, cursor } } })),
  );
  const save = () => {
    const rows = items.map((line) => [line.fireAt, line.status, line.runId, line.skewMs, line.reason]);
    offerFile(`${job}-${day}.csv`, csv(["fireAt", "status", "runId", "skewMs", "reason"], rows), "text/csv");
  };
  return (
    <Sheet
      title={`${asDay(from)} (UTC)`}
      flush
      actions={
        items.length > 0 && (
          <Button small icon="download" onClick={save}>
            CSV
          </Button>
        )
      }
    >
      <Found query={query}>
        {() =>
          items.length === 0 ? (
            <Empty title="No fires on this day" />
          ) : (
            <Rows
              items={items}
              height={52}
              label={`Fires of ${day}`}
              keyOf={(line) => `${line.fireAt}${line.status}`}
              most="46dvh"
              more={more}
              fetchMore={fetchMore}
            >
              {(line) => <LineRow job={job} line={line} />}
            </Rows>
          )
        }
      </Found>
    </Sheet>
  );
}

function LineRow({ job, line }: { job: string; line: Line }) {
  return (
    <div className="ledger-line">
      <Moment at={line.fireAt} />
      <StatePill state={line.status} />
      <span className="grow cut soft" title={line.reason ?? inUtc(line.fireAt)}>
        {line.reason ?? (line.skewMs === null ? "" : `started ${lasting(line.skewMs)} after it was due`)}
      </span>
      {line.runId && <Link href={`/jobs/${job}/runs/${line.runId}`}>Run</Link>}
    </div>
  );
}
