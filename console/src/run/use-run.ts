/**
 * A run with all its tasks, kept fresh. Changes that are heard are shown at once; what they do not say is asked for, the
 * less often the longer it takes.
 */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useReducer, useState } from "react";
import { cache } from "../api/cache";
import { answer, api } from "../api/client";
import { live, useLiveState, useTopic } from "../api/live";
import { hasEnded } from "../lib/states";
import { News } from "./changes";
import { Pace } from "./pace";
import type { Run, Task } from "./tasks";

const PAGE = 1_000;
const ASK_LEAST_MS = 700;
const SHOW_LEAST_MS = 120;
/** So many tasks are worth such a pause more before they are shown anew. */
const SHOW_TASKS = 2_000;
const LOOK_MS = 15_000;
const LOOK_ALONE_MS = 4_000;

/** Not below `of.run`, so that a burst of changes does not ask for ten thousand tasks several times a second. */
const keys = {
  all: (job: string, run: string) => ["watched", job, run] as const,
  run: (job: string, run: string) => ["watched", job, run, "run"] as const,
  tasks: (job: string, run: string) => ["watched", job, run, "tasks"] as const,
};

export const keyOfWhy = (job: string, run: string, task: string) => ["watched", job, run, "why", task] as const;

export function refreshRun(job: string, run: string): Promise<void> {
  return cache.invalidateQueries({ queryKey: keys.all(job, run) }, { cancelRefetch: false });
}

interface Snapshot<T> {
  askedAt: number;
  of: T;
}

export interface WatchedRun {
  run: Run | undefined;
  error: unknown;
  refetch: () => unknown;
  /** All of them; undefined until the last page of them is there. */
  tasks: readonly Task[] | undefined;
  /** How many tasks have come so far, while pages of them are fetched for the first time. */
  fetched: number;
  tasksError: unknown;
}

export function useRun(job: string, runId: string): WatchedRun {
  const [fetched, setFetched] = useState(0);
  const [seen, show] = useReducer((number: number) => number + 1, 0);
  const news = useMemo(() => new News(job, runId), [job, runId]);
  const isLive = useLiveState() === "on";
  useTopic(`run:${job}/${runId}`);
  const lookMs = (run: Run | undefined) => (run && hasEnded(run.state) ? false : isLive ? LOOK_MS : LOOK_ALONE_MS);
  const one = useQuery({
    queryKey: keys.run(job, runId),
    queryFn: () => snapshot(() => fetchRun(job, runId)),
    refetchInterval: (query) => lookMs(query.state.data?.of),
  });
  const hasMore = one.data?.of.moreTasks === true;
  const many = useQuery({
    queryKey: keys.tasks(job, runId),
    queryFn: ({ signal }) => snapshot(() => fetchTasks(job, runId, setFetched, signal)),
    enabled: hasMore,
    refetchInterval: () => lookMs(one.data?.of),
  });
  const { refetch: askOne } = one;
  const { refetch: askMany } = many;
  const showMs = SHOW_LEAST_MS * (1 + Math.floor((many.data?.of.length ?? 0) / SHOW_TASKS));
  useEffect(() => {
    const asks = [new Pace(() => askOne(), ASK_LEAST_MS)];
    if (hasMore) asks.push(new Pace(() => askMany(), ASK_LEAST_MS));
    const shows = new Pace(async () => show(), showMs);
    const end = live.hear(
      (changes) => {
        if (!news.hear(changes, Date.now())) return;
        shows.ask();
        for (const ask of asks) ask.ask();
      },
      () => undefined,
    );
    return () => {
      end();
      for (const pace of [...asks, shows]) pace.stop();
    };
  }, [news, askOne, askMany, hasMore, showMs]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the news have changed where there is more to show
  const run = useMemo(() => one.data && news.onRun(one.data.of, one.data.askedAt), [one.data, news, seen]);
  const base = hasMore ? many.data : one.data && { askedAt: one.data.askedAt, of: one.data.of.tasks };
  const at = base?.askedAt;
  const list = base?.of;
  // biome-ignore lint/correctness/useExhaustiveDependencies: as above
  const tasks = useMemo(() => list && news.onTasks(list, at ?? 0), [list, at, news, seen]);
  return { run, error: one.error, refetch: one.refetch, tasks, fetched, tasksError: hasMore ? many.error : null };
}

async function snapshot<T>(ask: () => Promise<T>): Promise<Snapshot<T>> {
  const askedAt = Date.now();
  return { askedAt, of: await ask() };
}

function fetchRun(job: string, run: string): Promise<Run> {
  return answer(api.GET("/jobs/{job}/runs/{run}", { params: { path: { job, run } } }));
}

async function fetchTasks(
  job: string,
  run: string,
  tell: (fetched: number) => void,
  signal: AbortSignal,
): Promise<readonly Task[]> {
  const found: Task[] = [];
  let cursor: string | undefined;
  do {
    const query = { limit: PAGE, ...(cursor ? { cursor } : {}) };
    const page = await answer(
      api.GET("/jobs/{job}/runs/{run}/tasks", { params: { path: { job, run }, query }, signal }),
    );
    found.push(...page.items);
    tell(found.length);
    cursor = page.nextCursor ?? undefined;
  } while (cursor);
  return found;
}
