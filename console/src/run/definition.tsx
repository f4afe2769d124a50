/** What the run was told to do: its job's definition in the version that it began with. */

import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../api/client";
import { ApiError } from "../api/problem";
import { Found } from "../ui/parts";
import { Text } from "./json";
import { mappedOf } from "./tasks";

export type Document = Readonly<Record<string, unknown>>;

const PAGE = 10;

/** The definition of a version, which never changes; null where it is gone. */
export function useDefinition(job: string, version: number | null) {
  return useQuery({
    queryKey: ["definition", job, version],
    queryFn: () => fetchDefinition(job, version),
    enabled: version !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

async function fetchDefinition(job: string, version: number | null): Promise<Document | null> {
  const path = { job };
  const now = await answer(api.GET("/jobs/{job}", { params: { path } })).catch((error) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
  if (now?.version === version && now.status !== "deleted") return now;
  let cursor: string | undefined;
  do {
    const query = { limit: PAGE, ...(cursor ? { cursor } : {}) };
    const page = await answer(api.GET("/jobs/{job}/versions", { params: { path, query } }));
    const found = page.items.find((one) => one.version === version);
    if (found) return found.definition;
    cursor = page.nextCursor ?? undefined;
  } while (cursor);
  return null;
}

const OF_A_STEP = ["run", "command", "retry", "retries", "timeout", "cache", "params", "template", "with"];

/** A task's part of it; of a job of one task, what says how it is run. */
export function stepOf(definition: Document | null | undefined, task: string): Document | null {
  if (!definition) return null;
  const { tasks } = definition;
  if (!Array.isArray(tasks)) {
    const own = Object.entries(definition).filter(([name, value]) => OF_A_STEP.includes(name) && value != null);
    return own.length ? Object.fromEntries(own) : null;
  }
  const id = mappedOf(task) ?? task;
  const all = tasks as Document[];
  return all.find((one) => one.id === id) ?? (all.length === 1 ? (all[0] ?? null) : null);
}

/** Whom an approval asks, nobody in particular where the list is empty; null where the task is none. */
export function askedBy(step: Document | null): readonly string[] | null {
  const run = step?.run as { approval?: { by?: unknown } } | undefined;
  if (!run?.approval) return null;
  return Array.isArray(run.approval.by) ? run.approval.by.map(String) : [];
}

export function Definition({ job, version, task }: { job: string; version: number | null; task: string }) {
  const found = useDefinition(job, version);
  const step = stepOf(found.data, task);
  if (version === null)
    return <p className="soft">The run has not begun: it takes the version that is in force then.</p>;
  return <Found query={found}>{() => (step ? <Step step={step} /> : <Gone version={version} />)}</Found>;
}

function Gone({ version }: { version: number }) {
  return <p className="soft">Version {version} of the job is not kept any more.</p>;
}

function Step({ step }: { step: Document }) {
  const found = useQuery({
    queryKey: ["definition as text", step],
    queryFn: async () => (await import("yaml")).stringify(step, { lineWidth: 100 }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return <Found query={found}>{(text) => <Text text={text} what="the definition" />}</Found>;
}
