/** What is fetched is kept by what it is of, so that a change refreshes what shows it, and nothing else. */

import { QueryClient } from "@tanstack/react-query";
import { type Change, live } from "./live";
import { ApiError } from "./problem";

export const cache = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) =>
        failures < 2 && !(error instanceof ApiError && error.status < 500 && error.status !== 429),
      refetchOnWindowFocus: true,
    },
    mutations: { retry: false },
  },
});

/**
 * The keys of queries. A change of a run refreshes `of.runs`, `of.job(job)` and `of.run(job, run)` with all below them.
 */
export const of = {
  runs: ["runs"] as const,
  overview: ["overview"] as const,
  jobs: ["jobs"] as const,
  job: (job: string) => ["job", job] as const,
  jobRuns: (job: string) => ["job", job, "runs"] as const,
  run: (job: string, run: string) => ["run", job, run] as const,
  admin: ["admin"] as const,
};

const REFRESH_MS = 150;
let waiting = new Set<string>();
let timer: number | undefined;

/** Changes come in bursts: what they touch is asked for once, at once for the first and then a few times a second. */
function refreshSoon(changes: readonly Change[]): void {
  for (const change of changes) {
    waiting.add(JSON.stringify(of.job(change.jobId)));
    if (change.runId) waiting.add(JSON.stringify(of.run(change.jobId, change.runId)));
  }
  waiting.add(JSON.stringify(of.runs));
  waiting.add(JSON.stringify(of.jobs));
  if (timer === undefined) timer = window.setTimeout(refresh, REFRESH_MS);
}

function refresh(): void {
  timer = undefined;
  const keys = waiting;
  waiting = new Set();
  for (const key of keys)
    void cache.invalidateQueries({ queryKey: JSON.parse(key) as string[] }, { cancelRefetch: false });
}

export function keepFresh(): () => void {
  return live.hear(refreshSoon, () => void cache.invalidateQueries());
}

/** What was seen under a session is gone with it. */
export function forget(): void {
  cache.removeQueries({ predicate: (query) => query.queryKey[0] !== "config" });
}
