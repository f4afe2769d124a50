/** Runs across jobs, newest first: page by page as far down as somebody looks, and kept fresh at the top. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useReducer, useRef } from "react";
import { answer, api } from "../api/client";
import { type Change, live, useLiveState, useTopic } from "../api/live";
import { hasEnded, type RunState } from "../lib/states";
import { Pace } from "./pace";
import { keyOfRun, type RunInList } from "./rows";

export interface Asked {
  state: string;
  job: string;
  tag: string;
  from: string;
  to: string;
}

const PAGE = 200;
const HEAD = 100;
const HEAD_LEAST_MS = 400;
const SHOW_LEAST_MS = 150;
const ALL_LEAST_MS = 6_000;
/** The list is derived from the runs, and may be a moment behind what is heard of them. */
const MISSED_MOST = 5;
const LOOK_MS = 30_000;
const LOOK_ALONE_MS = 5_000;

interface Heard {
  change: Change;
  at: number;
  /** How often the newest runs were asked for and it was not among them. */
  missed: number;
}

export interface RunList {
  runs: readonly RunInList[];
  isLoading: boolean;
  error: unknown;
  refetch: () => unknown;
  more: boolean;
  fetchMore: () => void;
}

export function useRunList(asked: Asked): RunList {
  const isLive = useLiveState() === "on";
  useTopic("runs");
  const [seen, show] = useReducer((number: number) => number + 1, 0);
  const pages = useInfiniteQuery({
    queryKey: ["run list", asked],
    queryFn: ({ pageParam, signal }) => fetchPage(asked, PAGE, pageParam, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
  const head = useQuery({
    queryKey: ["run list", asked, "head"],
    queryFn: ({ signal }) => fetchPage(asked, HEAD, "", signal),
    enabled: pages.isSuccess,
    refetchInterval: isLive ? LOOK_MS : LOOK_ALONE_MS,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was heard is about another list then
  const heard = useMemo(() => new Map<string, Heard>(), [asked]);
  const merged = useMemo(
    () => merge(pages.data?.pages.flatMap(({ items }) => items) ?? [], head.data?.items ?? []),
    [pages.data, head.data],
  );
  const known = useRef(merged);
  known.current = merged;
  const { refetch: askAll } = pages;
  const { refetch: askHead } = head;
  useEffect(() => {
    const all = new Pace(() => askAll(), ALL_LEAST_MS, 10);
    const shows = new Pace(async () => show(), SHOW_LEAST_MS);
    const missing = (keys: ReadonlySet<string>) =>
      [...heard].filter(
        ([key, { change, missed }]) => missed < MISSED_MOST && !keys.has(key) && mayBeIn(asked, change),
      );
    const heads = new Pace(
      async () => {
        const { data } = await askHead();
        const newest = new Set((data?.items ?? []).map(keyOfRun));
        const left = missing(known.current.keys).filter(([key]) => !newest.has(key));
        for (const [, one] of left) {
          one.missed += 1;
          // Not among the newest, such as a run of a backfill: it is somewhere further down.
          if (one.missed === MISSED_MOST) all.ask();
        }
        if (left.length) heads.ask();
      },
      HEAD_LEAST_MS,
      2,
    );
    const end = live.hear(
      (changes) => {
        for (const change of changes) if (change.runId && !change.taskId) hearOf(heard, change);
        shows.ask();
        if (missing(known.current.keys).length) heads.ask();
      },
      () => heard.clear(),
    );
    return () => {
      end();
      for (const pace of [all, shows, heads]) pace.stop();
    };
  }, [asked, heard, askAll, askHead]);
  const askedAt = Math.max(pages.dataUpdatedAt, head.dataUpdatedAt);
  // biome-ignore lint/correctness/useExhaustiveDependencies: more was heard where there is more to show
  const runs = useMemo(() => {
    const last = pages.hasNextPage ? (merged.runs.at(-1)?.runId ?? "") : "";
    const fresh = asked.tag ? [] : unlisted(asked, merged.keys, heard).filter(({ runId }) => runId > last);
    const all = fresh.length ? merge(merged.runs, fresh).runs : merged.runs;
    return changed(all, heard, askedAt).filter(({ state }) => !asked.state || state === asked.state);
  }, [merged, heard, askedAt, asked, pages.hasNextPage, seen]);
  const { fetchNextPage, isFetchingNextPage } = pages;
  return {
    runs,
    isLoading: pages.isPending,
    error: pages.error ?? head.error,
    refetch: pages.refetch,
    more: pages.hasNextPage,
    fetchMore: () => {
      if (!isFetchingNextPage) void fetchNextPage();
    },
  };
}

function fetchPage({ state, job, tag, from, to }: Asked, limit: number, cursor: string, signal: AbortSignal) {
  const query = {
    limit,
    ...(state && { state: state as RunState }),
    ...(job && { job }),
    ...(tag && { tag }),
    ...(from && { from }),
    ...(to && { to }),
    ...(cursor && { cursor }),
  };
  return answer(api.GET("/runs", { params: { query }, signal }));
}

interface Merged {
  runs: readonly RunInList[];
  keys: ReadonlySet<string>;
}

/** What the head has is newer; what only it has is put where it belongs. */
export function merge(rows: readonly RunInList[], head: readonly RunInList[]): Merged {
  const found = new Map<string, RunInList>();
  for (const row of rows) found.set(keyOfRun(row), row);
  for (const row of head) {
    const before = found.get(keyOfRun(row));
    if (!before || !hasEnded(before.state)) found.set(keyOfRun(row), row);
  }
  const runs = [...found.values()].sort((a, b) => (a.runId < b.runId ? 1 : a.runId > b.runId ? -1 : 0));
  return { runs, keys: new Set(found.keys()) };
}

function hearOf(heard: Map<string, Heard>, change: Change): void {
  const key = keyOfRun({ jobId: change.jobId, runId: change.runId ?? "" });
  const before = heard.get(key);
  if (before && before.change.seq >= change.seq) return;
  heard.set(key, { change, at: Date.now(), missed: before?.missed ?? 0 });
}

/** Runs that were heard of before the list knows them: what is not known of them yet is left out. */
function unlisted(asked: Asked, keys: ReadonlySet<string>, heard: ReadonlyMap<string, Heard>): RunInList[] {
  return [...heard].flatMap(([key, { change, missed }]) => {
    const at = firedAt(change.runId ?? "");
    if (at === null || missed >= MISSED_MOST || keys.has(key) || !mayBeIn(asked, change)) return [];
    const run = { jobId: change.jobId, runId: change.runId ?? "", state: change.state as RunInList["state"] };
    const rest = { reason: null, attempt: 1, startedAt: null, endedAt: null, trigger: "" as RunInList["trigger"] };
    return [{ ...rest, ...run, fireAt: new Date(at).toISOString() }];
  });
}

/** Whether the list could hold the run that a change is about; of its tags, a change says nothing. */
export function mayBeIn({ state, job, from, to }: Asked, change: Pick<Change, "jobId" | "runId" | "state">): boolean {
  if ((job && job !== change.jobId) || (state && state !== change.state)) return false;
  const at = firedAt(change.runId ?? "");
  return at === null || ((!from || at >= Date.parse(from)) && (!to || at <= Date.parse(to)));
}

/** A run's id begins with its fire time, such as 20261116T060000Z. */
function firedAt(runId: string): number | null {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z/.exec(runId) ?? [];
  if (parts.length !== 6) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/** The rows with what was heard since they were asked for; what has ended stays so. */
export function changed(
  runs: readonly RunInList[],
  heard: ReadonlyMap<string, Heard>,
  askedAt: number,
): readonly RunInList[] {
  if (heard.size === 0) return runs;
  return runs.map((run) => {
    const news = hasEnded(run.state) && run.trigger ? undefined : heard.get(keyOfRun(run));
    if (!news || (news.at < askedAt && !hasEnded(news.change.state))) return run;
    const { state, reason, attempt, at } = news.change;
    const when = typeof at === "string" ? at : null;
    return {
      ...run,
      state: state as RunInList["state"],
      reason: typeof reason === "string" ? reason : null,
      attempt: typeof attempt === "number" ? attempt : run.attempt,
      startedAt: run.startedAt ?? (state === "running" ? when : null),
      endedAt: hasEnded(state) ? when : null,
    };
  });
}
