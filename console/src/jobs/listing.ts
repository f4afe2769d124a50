/**
 * The list of jobs, page by page. Of thousands that were scrolled through, only pages in sight are asked for again:
 * a run that changes is on screen at once from what the server told, and its page follows.
 */

import { type InfiniteData, keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { cache } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { type Change, live } from "../api/live";

export type ListedJob = Shape<"Job">;
type Status = "active" | "paused" | "running" | "deleted";

export interface Filters {
  search: string;
  status: string;
  tag: string;
}

type Page = Shape<"JobPage">;
type Pages = InfiniteData<Page, string | null>;

const PAGE = 50;
const SEARCH_MAX = 128;
const RUNS_SHOWN = 10;
const FOLLOWS_MS = 1_000;
const AGAIN_MS = 30_000;

async function pageOf(filters: Filters, cursor: string | null, namespace: string, signal?: AbortSignal): Promise<Page> {
  const query = {
    ...(filters.search && { search: filters.search.slice(0, SEARCH_MAX) }),
    ...(filters.status && { status: filters.status as Status }),
    ...(filters.tag && { tag: filters.tag.slice(0, SEARCH_MAX) }),
    ...(cursor && { cursor }),
    include: "recentRuns",
    limit: PAGE,
  } as const;
  return answer(api.GET("/jobs", { params: { query }, headers: { "X-Namespace": namespace }, signal }));
}

export interface Listing {
  jobs: readonly ListedJob[];
  query: { data: unknown; error: unknown; refetch: () => unknown };
  isPending: boolean;
  more: boolean;
  fetchMore: () => void;
  /** Rows say when they come in sight; what they return is called when they go. */
  inSight: (job: string) => () => void;
  /** Ask for what is in sight again. */
  refresh: () => void;
}

export function useListing(filters: Filters, namespace: string): Listing {
  const { search, status, tag } = filters;
  const key = useMemo(() => ["listing", namespace, search, status, tag] as const, [namespace, search, status, tag]);
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => pageOf({ search, status, tag }, pageParam, namespace, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last: Page) => last.nextCursor,
    staleTime: Number.POSITIVE_INFINITY,
    // To compare all pages with every page that comes would take longer and longer.
    structuralSharing: false,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    placeholderData: keepPreviousData,
  });
  const { data, hasNextPage, isFetchingNextPage, isPlaceholderData, fetchNextPage, refetch } = query;
  const jobs = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  const pages = data?.pages.length ?? 0;
  // A new function with every page: a page without any job, which a narrow search can have, is followed by the next.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the number of pages is what makes it new
  const fetchMore = useCallback(() => {
    if (!isFetchingNextPage) void fetchNextPage();
  }, [pages, isFetchingNextPage, fetchNextPage]);
  useEffect(() => {
    if (jobs.length === 0 && hasNextPage) fetchMore();
  }, [jobs.length, hasNextPage, fetchMore]);
  const fresh = useFreshness(key, { search, status, tag }, namespace);
  return {
    jobs,
    query: { data: isPlaceholderData && jobs.length === 0 ? undefined : data, error: query.error, refetch },
    isPending: isPlaceholderData || (jobs.length === 0 && hasNextPage),
    more: hasNextPage,
    fetchMore,
    ...fresh,
  };
}

function useFreshness(key: readonly string[], filters: Filters, namespace: string) {
  const shown = useRef(new Map<string, number>());
  const stale = useRef(new Set<string>());
  const timer = useRef<number | undefined>(undefined);
  const about = useRef({ key, filters, namespace });
  about.current = { key, filters, namespace };

  const follow = useCallback(() => {
    const step = async () => {
      timer.current = undefined;
      const { key: of, filters: by, namespace: within } = about.current;
      const wanted = [...shown.current.keys()].filter((job) => stale.current.has(job));
      const before = cache.getQueryData<Pages>(of);
      const index = before?.pages.findIndex((page) => page.items.some((job) => wanted.includes(job.jobId))) ?? -1;
      const old = before?.pages[index];
      if (!before || !old) return;
      for (const job of old.items) stale.current.delete(job.jobId);
      const page = await pageOf(by, before.pageParams[index] ?? null, within);
      for (const job of page.items) stale.current.delete(job.jobId);
      const isMoved = index < before.pages.length - 1 && page.nextCursor !== old.nextCursor;
      if (isMoved) await cache.invalidateQueries({ queryKey: of, exact: true });
      else cache.setQueryData<Pages>(of, (now) => now && withPage(now, old, page));
      if (wanted.some((job) => stale.current.has(job))) follow();
    };
    // Safe to let it fail: what is on screen stays, and the next change or half minute asks again.
    timer.current ??= window.setTimeout(() => void step().catch(() => undefined), FOLLOWS_MS);
  }, []);

  const refresh = useCallback(() => {
    for (const page of cache.getQueryData<Pages>(about.current.key)?.pages ?? [])
      for (const job of page.items) stale.current.add(job.jobId);
    follow();
  }, [follow]);

  useEffect(() => {
    const heard = (changes: readonly Change[]) => {
      cache.setQueryData<Pages>(about.current.key, (now) => now && withChanges(now, changes));
      for (const change of changes) stale.current.add(change.jobId);
      follow();
    };
    const ends = live.hear(heard, () => undefined);
    const again = window.setInterval(refresh, AGAIN_MS);
    window.addEventListener("focus", refresh);
    refresh();
    return () => {
      ends();
      window.clearInterval(again);
      window.clearTimeout(timer.current);
      timer.current = undefined;
      window.removeEventListener("focus", refresh);
    };
  }, [follow, refresh]);

  const inSight = useCallback(
    (job: string) => {
      shown.current.set(job, (shown.current.get(job) ?? 0) + 1);
      if (stale.current.has(job)) follow();
      return () => {
        const left = (shown.current.get(job) ?? 1) - 1;
        if (left > 0) shown.current.set(job, left);
        else shown.current.delete(job);
      };
    },
    [follow],
  );
  return { inSight, refresh };
}

function withPage(now: Pages, old: Page, page: Page): Pages {
  return { ...now, pages: now.pages.map((one) => (one.nextCursor === old.nextCursor ? page : one)) };
}

/** The list with runs as the server just told them to be. */
export function withChanges(now: Pages, changes: readonly Change[]): Pages {
  const news = new Map<string, Change[]>();
  for (const change of changes) {
    if (change.runId && !change.taskId) news.set(change.jobId, [...(news.get(change.jobId) ?? []), change]);
  }
  if (!now.pages.some((page) => page.items.some((job) => news.has(job.jobId)))) return now;
  const pages = now.pages.map((page) => {
    if (!page.items.some((job) => news.has(job.jobId))) return page;
    return { ...page, items: page.items.map((job) => (news.get(job.jobId) ?? []).reduce(withRun, job)) };
  });
  return { ...now, pages };
}

function withRun(job: ListedJob, change: Change): ListedJob {
  const runs = job.recentRuns ?? [];
  const at = typeof change.at === "string" ? change.at : new Date().toISOString();
  const state = change.state as Shape<"RunState">;
  if (runs.some((run) => run.runId === change.runId)) {
    return { ...job, recentRuns: runs.map((run) => (run.runId === change.runId ? { ...run, state } : run)) };
  }
  const run = { runId: change.runId ?? "", state, fireAt: at, startedAt: null, endedAt: null };
  return { ...job, recentRuns: [run, ...runs].slice(0, RUNS_SHOWN) };
}
