import { describe, expect, it } from "vitest";
import { News } from "./changes";
import { mayBeIn, merge } from "./list";
import { again } from "./outcome";
import type { RunInList } from "./rows";
import type { Run, Task } from "./tasks";

function task(id: string, state: string, needs: string[] = []): Task {
  const rest = { reason: null, attempt: 1, attempts: [], startedAt: null, endedAt: null, output: null };
  return { ...rest, id, state, needs, group: "", carriedFrom: "" };
}

const about = { jobId: "etl", runId: "r1", reason: null, attempt: 1, progress: null, at: "2026-11-16T06:00:01Z" };
const tasks = [task("a", "running"), task("b", "waiting")];

describe("changes that were heard", () => {
  it("show at once on what was asked for before", () => {
    const news = new News("etl", "r1");
    expect(news.hear([{ ...about, taskId: "a", state: "succeeded", seq: 4 }], 100)).toBe(true);
    const [a, b] = news.onTasks(tasks, 50);
    expect(a?.state).toBe("succeeded");
    expect(a?.endedAt).toBe("2026-11-16T06:00:01Z");
    expect(b).toBe(tasks[1]);
  });

  it("give way to what was asked for later", () => {
    const news = new News("etl", "r1");
    news.hear([{ ...about, taskId: "a", state: "retrying", seq: 4 }], 100);
    expect(news.onTasks(tasks, 150)[0]).toBe(tasks[0]);
  });

  it("are dropped where a newer one was heard, or they are about another run", () => {
    const news = new News("etl", "r1");
    news.hear([{ ...about, taskId: "a", state: "retrying", seq: 4 }], 100);
    expect(news.hear([{ ...about, taskId: "a", state: "queued", seq: 3 }], 110)).toBe(false);
    expect(news.hear([{ ...about, runId: "r2", taskId: "a", state: "failed", seq: 9 }], 110)).toBe(false);
    expect(news.onTasks(tasks, 50)[0]?.state).toBe("retrying");
  });

  it("never undo an end", () => {
    const news = new News("etl", "r1");
    news.hear([{ ...about, taskId: "a", state: "succeeded", seq: 4 }], 100);
    expect(news.onTasks(tasks, 150)[0]?.state).toBe("succeeded");
    news.hear([{ ...about, taskId: "b", state: "running", seq: 4 }], 200);
    const ended = [tasks[0] as Task, { ...(tasks[1] as Task), state: "failed" }];
    expect(news.onTasks(ended, 150)[1]?.state).toBe("failed");
  });

  it("show on the run itself", () => {
    const news = new News("etl", "r1");
    news.hear([{ ...about, state: "running", seq: 2 }], 100);
    const run = { state: "queued", startedAt: null, endedAt: null, progress: null } as Run;
    expect(news.onRun(run, 50)).toMatchObject({ state: "running", startedAt: "2026-11-16T06:00:01Z" });
  });
});

describe("a list of runs", () => {
  const row = (runId: string, state: string) => ({ jobId: "etl", runId, state }) as RunInList;

  it("takes what is newer from its head, and puts it where it belongs", () => {
    const { runs } = merge([row("3", "running"), row("1", "failed")], [row("4", "queued"), row("3", "succeeded")]);
    expect(runs.map(({ runId, state }) => `${runId} ${state}`)).toEqual(["4 queued", "3 succeeded", "1 failed"]);
  });
});

describe("a change on a list of runs", () => {
  const any = { state: "", job: "", tag: "", from: "", to: "" };
  const change = { jobId: "etl", runId: "20261116T060000Z.1", state: "queued" };

  it.each([
    [any, true],
    [{ ...any, job: "other" }, false],
    [{ ...any, job: "etl", state: "queued" }, true],
    [{ ...any, state: "failed" }, false],
    [{ ...any, from: "2026-11-16T05:59:00Z" }, true],
    [{ ...any, from: "2026-11-16T06:01:00Z" }, false],
    [{ ...any, to: "2026-11-16T05:00:00Z" }, false],
  ])("is about a run that may be in it: %o", (asked, isIn) => {
    expect(mayBeIn(asked, change)).toBe(isIn);
  });
});

describe("a rerun", () => {
  const graph = [
    task("a", "succeeded"),
    task("b", "failed", ["a"]),
    task("c", "upstream_failed", ["b"]),
    task("d", "skipped", ["a"]),
    task("e", "succeeded", ["a"]),
  ];

  it("from failed takes over what succeeded and was skipped", () => {
    expect(again(graph, "failed")).toEqual({ anew: ["b", "c"], kept: ["a", "d", "e"] });
  });

  it("from a task starts it and all that comes after it", () => {
    expect(again(graph, "task", "a").kept).toEqual([]);
    expect(again(graph, "task", "e")).toEqual({ anew: ["e"], kept: ["a", "b", "c", "d"] });
    expect(again(graph, "all").anew).toHaveLength(5);
  });
});
