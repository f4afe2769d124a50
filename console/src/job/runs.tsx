/** The runs of one job, newest first, however many there are. */

import { of } from "../api/cache";
import { answer, api } from "../api/client";
import { useQueryPart } from "../lib/hooks";
import { lookOf, RUN_STATES, type RunState } from "../lib/states";
import { RunRows } from "../run/rows";
import { SelectField } from "../ui/form";
import { usePages } from "../ui/pages";
import { Empty, Found, Sheet } from "../ui/parts";

const ANY = { value: "", label: "Any state" };

export function RunsOfJob({ job }: { job: string }) {
  const [state, setState] = useQueryPart("state");
  const { query, items, more, fetchMore } = usePages([...of.jobRuns(job), "list", state], (cursor) =>
    answer(
      api.GET("/jobs/{job}/runs", {
        params: { path: { job }, query: { limit: 100, cursor, state: (state || undefined) as RunState | undefined } },
      }),
    ),
  );
  return (
    <>
      <div style={{ maxWidth: 220 }}>
        <SelectField
          label="State"
          value={state}
          choices={[ANY, ...RUN_STATES.map((value) => ({ value, label: lookOf(value).label }))]}
          onChange={(event) => setState(event.target.value)}
        />
      </div>
      <Sheet label={`Runs of ${job}`} flush>
        <Found query={query}>
          {() =>
            items.length === 0 ? (
              <Empty title={state ? `No runs that are ${lookOf(state).label.toLowerCase()}` : "No runs yet"} />
            ) : (
              <RunRows runs={items} label={`Runs of ${job}`} more={more} fetchMore={fetchMore} />
            )
          }
        </Found>
      </Sheet>
    </>
  );
}
