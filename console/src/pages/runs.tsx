/** Runs across jobs: what was run, what failed, and what one does about many at once. */

import { useState } from "react";
import { csv, offerFile } from "../lib/download";
import { useTitle } from "../lib/hooks";
import { useMay } from "../lib/roles";
import { hasEnded } from "../lib/states";
import { between } from "../lib/time";
import { type Does, FilteredRuns, TickedRuns } from "../run/bulk";
import { useFilters } from "../run/filters";
import { useRunList } from "../run/list";
import { keyOfRun, type RunInList, RunRows } from "../run/rows";
import { counted } from "../run/words";
import { Menu } from "../ui/menu";
import { Button, Empty, Loading, PageHead, Sheet, Wrong } from "../ui/parts";
import "../style/run.css";

export default function Page() {
  useTitle("Runs");
  const { asked, when, fields, isNarrowed } = useFilters();
  const list = useRunList(asked);
  const may = useMay("operator");
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const [all, setAll] = useState<Does | null>(null);
  const chosen = list.runs.filter((run) => ticked.has(keyOfRun(run)));
  const toggle = (run: RunInList) => {
    const next = new Set(ticked);
    if (!next.delete(keyOfRun(run))) next.add(keyOfRun(run));
    setTicked(next);
  };
  return (
    <>
      <PageHead title="Runs">
        <Button icon="download" disabled={list.runs.length === 0} onClick={() => exportRuns(list.runs)}>
          Export CSV
        </Button>
        {may && (
          <Menu
            label="All that match"
            icon="down"
            items={[
              { label: "Cancel all that match…", icon: "stop", danger: true, run: () => setAll("cancel") },
              { label: "Rerun all that match…", icon: "rerun", run: () => setAll("rerun") },
            ]}
          >
            All that match
          </Menu>
        )}
      </PageHead>
      {fields}
      {list.error !== null && <Wrong error={list.error} again={() => void list.refetch()} />}
      <Sheet flush label="Runs that were found">
        {may && list.runs.length > 0 && (
          <Ticked
            runs={list.runs}
            chosen={chosen}
            onAll={(isAll) => setTicked(new Set(isAll ? list.runs.map(keyOfRun) : []))}
            onDone={() => setTicked(new Set())}
          />
        )}
        {list.isLoading && !list.error && (
          <div className="inside">
            <Loading lines={8} />
          </div>
        )}
        {!list.isLoading && list.runs.length === 0 && (
          <Empty title={`No ${isNarrowed ? "such " : ""}runs ${when}`}>
            <p>{isNarrowed ? "Other filters, or a longer time, may find some." : "A longer time may find some."}</p>
          </Empty>
        )}
        {list.runs.length > 0 && (
          <RunRows
            runs={list.runs}
            label="Runs"
            withJob
            select={may ? { has: (run) => ticked.has(keyOfRun(run)), toggle } : undefined}
            most="calc(100dvh - 250px)"
            more={list.more}
            fetchMore={list.fetchMore}
          />
        )}
      </Sheet>
      {all && (
        <FilteredRuns
          does={all}
          asked={asked}
          when={when}
          onDone={() => setTicked(new Set())}
          onClose={() => setAll(null)}
        />
      )}
    </>
  );
}

interface TickedProps {
  runs: readonly RunInList[];
  chosen: readonly RunInList[];
  onAll: (isAll: boolean) => void;
  onDone: () => void;
}

function Ticked({ runs, chosen, onAll, onDone }: TickedProps) {
  const [does, setDoes] = useState<Does | null>(null);
  const isAll = chosen.length === runs.length;
  return (
    <div className="run-ticked row wrap">
      <label className="check">
        <input
          type="checkbox"
          checked={isAll}
          ref={(box) => {
            if (box) box.indeterminate = chosen.length > 0 && !isAll;
          }}
          onChange={() => onAll(!isAll)}
        />
        {chosen.length ? `${chosen.length.toLocaleString()} chosen` : `${counted(runs.length, "run")}`}
      </label>
      {chosen.some(({ state }) => hasEnded(state)) && (
        <Button small icon="rerun" onClick={() => setDoes("rerun")}>
          Rerun
        </Button>
      )}
      {chosen.some(({ state }) => !hasEnded(state)) && (
        <Button small kind="danger" icon="stop" onClick={() => setDoes("cancel")}>
          Cancel
        </Button>
      )}
      {does && <TickedRuns does={does} runs={chosen} onDone={onDone} onClose={() => setDoes(null)} />}
    </div>
  );
}

const COLUMNS = ["job", "run", "state", "reason", "trigger", "fireAt", "startedAt", "endedAt", "seconds", "attempt"];

function exportRuns(runs: readonly RunInList[]): void {
  const rows = runs.map((run) => [
    run.jobId,
    run.runId,
    run.state,
    run.reason,
    run.trigger,
    run.fireAt,
    run.startedAt,
    run.endedAt,
    run.endedAt && (between(run.startedAt, run.endedAt) ?? 0) / 1_000,
    run.attempt,
  ]);
  offerFile(`runs-${new Date().toISOString().slice(0, 10)}.csv`, csv(COLUMNS, rows), "text/csv;charset=utf-8");
}
