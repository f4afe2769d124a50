import { describe, expect, it } from "vitest";
import type { Change } from "../api/live";
import { type ListedJob, withChanges } from "./listing";

const run = (runId: string, state: string) => ({ runId, state, fireAt: "2026-11-18T12:00:00Z" });
const job = (jobId: string, ...recentRuns: object[]) => ({ jobId, recentRuns }) as unknown as ListedJob;
const change = (jobId: string, runId: string, state: string, taskId?: string): Change => ({
  jobId,
  runId,
  state,
  seq: 1,
  at: "2026-11-18T12:01:00Z",
  ...(taskId && { taskId }),
});

describe("what the server tells of runs", () => {
  const now = {
    pages: [
      { items: [job("a", run("r1", "running"))], nextCursor: "x" },
      { items: [job("b")], nextCursor: null },
    ],
    pageParams: [null, "x"],
  };
  const runsOf = (pages: typeof now.pages) =>
    pages.flatMap((page) => page.items.map((one) => one.recentRuns?.map(({ runId, state }) => `${runId} ${state}`)));

  it("is in the list at once, newest first", () => {
    const { pages } = withChanges(now, [
      change("a", "r1", "failed"),
      change("a", "r2", "queued"),
      change("a", "r2", "running"),
    ]);
    expect(runsOf(pages)).toEqual([["r2 running", "r1 failed"], []]);
    expect(pages[1]).toBe(now.pages[1]);
  });

  it("changes nothing where it is of jobs that are not shown, or of tasks", () => {
    expect(withChanges(now, [change("c", "r1", "failed"), change("a", "r1", "failed", "load")])).toBe(now);
  });
});
