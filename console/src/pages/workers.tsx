/** Who pulls work, what they hold and when they were last heard of; and the pools that bound it. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { useTitle } from "../lib/hooks";
import { usePages } from "../ui/pages";
import { Button, Empty, Found, Moment, PageHead, Sheet, StatePill } from "../ui/parts";

const REFRESH_MS = 5_000;
const SILENT_MS = 2 * 60_000;

interface Held {
  jobId?: string;
  runId?: string;
  taskId?: string;
  leaseUntil?: string;
}

export default function WorkersPage() {
  useTitle("Workers");
  return (
    <>
      <PageHead
        title="Workers and queues"
        below="What runs elsewhere and pulls its work, and what bounds how much runs."
      />
      <Workers />
      <div className="columns">
        <Queues />
        <Pools />
      </div>
    </>
  );
}

function Workers() {
  const { query, items, more, fetchMore } = usePages(
    [...of.admin, "workers"],
    (cursor) => answer(api.GET("/workers", { params: { query: { limit: 100, cursor } } })),
    REFRESH_MS,
  );
  return (
    <Sheet title="External workers" flush>
      <Found query={query}>
        {() =>
          items.length === 0 ? (
            <Empty title="No external workers">
              <p>
                Tasks of the kind <code>external</code> wait for programs of yours that pull work: start one with{" "}
                <code>sweephand worker</code>.
              </p>
            </Empty>
          ) : (
            <>
              <WorkerTable workers={items} />
              {more && (
                <div className="inside">
                  <Button onClick={fetchMore}>Show more</Button>
                </div>
              )}
            </>
          )
        }
      </Found>
    </Sheet>
  );
}

function WorkerTable({ workers }: { workers: readonly Shape<"Worker">[] }) {
  return (
    <div className="scroll-x">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col">Last seen</th>
            <th scope="col">Holds</th>
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => (
            <tr key={worker.workerId}>
              <td className="mono">{worker.workerId}</td>
              <td>
                <Moment at={worker.lastSeenAt} relative />
                {Date.now() - Date.parse(worker.lastSeenAt) > SILENT_MS && <div className="soft">silent</div>}
              </td>
              <td>
                <Holding held={worker.holds as Held[]} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const NAMED = 5;

function Holding({ held }: { held: readonly Held[] }) {
  if (held.length === 0) return <span className="soft">nothing</span>;
  return (
    <ul>
      {held.slice(0, NAMED).map((one) => (
        <li key={`${one.jobId}/${one.runId}/${one.taskId}`}>
          <Link
            href={`/jobs/${one.jobId}/runs/${one.runId}${one.taskId ? `?task=${encodeURIComponent(one.taskId)}` : ""}`}
          >
            {one.jobId}
            {one.taskId && ` · ${one.taskId}`}
          </Link>
        </li>
      ))}
      {held.length > NAMED && <li className="soft">and {held.length - NAMED} more</li>}
    </ul>
  );
}

function Queues() {
  const stats = useQuery({
    queryKey: [...of.overview, "stats"],
    queryFn: () => answer(api.GET("/stats")),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Sheet title="Runs by state" flush>
      <Found query={stats}>
        {(found) => (
          <table className="table">
            <thead>
              <tr>
                <th scope="col">State</th>
                <th scope="col" className="right">
                  Runs
                </th>
              </tr>
            </thead>
            <tbody>
              {Object.entries(found.runs).map(([state, count]) => (
                <tr key={state}>
                  <td>
                    <Link href={`/runs?state=${state}`}>
                      <StatePill state={state} />
                    </Link>
                  </td>
                  <td className="right number">{count.toLocaleString()}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Found>
    </Sheet>
  );
}

function Pools() {
  const pools = useQuery({
    queryKey: [...of.admin, "pools"],
    queryFn: async () => (await answer(api.GET("/pools", { params: { query: { limit: 200 } } }))).items,
    refetchInterval: REFRESH_MS,
  });
  return (
    <Sheet title="Pools" actions={<Link href="/shared/pools">Change pools</Link>} flush>
      <Found query={pools}>
        {(found) =>
          found.length === 0 ? (
            <Empty title="No pools">
              <p>A pool bounds how many runs use something at once, such as a warehouse.</p>
            </Empty>
          ) : (
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">Pool</th>
                  <th scope="col" className="right">
                    Slots
                  </th>
                </tr>
              </thead>
              <tbody>
                {found.map((pool) => (
                  <tr key={pool.id}>
                    <td>{pool.id}</td>
                    <td className="right number">{String(pool.slots ?? "")}</td>
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
