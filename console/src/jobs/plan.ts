/** What the server makes of a definition while it is being written: what is wrong with it, or what it would do. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { answer, api, type Shape } from "../api/client";
import type { OwnNamespace } from "../api/namespace";
import { ApiError } from "../api/problem";
import { useSettled } from "../lib/hooks";
import type { Definition } from "./definition";
import { placeOf, type Written } from "./document";

export interface Problem {
  /** As the API names the field; empty where the text cannot be read. */
  path: string;
  message: string;
  from: number;
  to: number;
}

export interface Difference {
  action: "create" | "change" | "none";
  version: number | null;
  summary: string[];
}

export interface Planned {
  plan: Shape<"Plan"> | null;
  difference: Difference | null;
  problems: readonly Problem[];
  /** Whether this is about the text as it is now. */
  isCurrent: boolean;
  /** Why nothing can be said, where that is nobody's fault who writes a job. */
  failure: unknown;
}

const SETTLED_MS = 350;
/** Stands for a name that is still to be given, so that all else can be looked at. */
const UNNAMED = "a-job-without-a-name-yet";

/** `job` is the one that gets a new version; null where there is to be a new one. */
export function usePlan(
  written: Written,
  job: string | null,
  namespace: OwnNamespace,
  base: number | null = null,
  isUntouched = false,
): Planned {
  const { value, misread } = written;
  const now = useMemo(() => (value ? JSON.stringify(asked(value, job)) : ""), [value, job]);
  const settled = useSettled(now, SETTLED_MS);
  const query = useQuery({
    // What it is compared with changes when somebody saves.
    queryKey: ["plan", namespace.name, base, settled],
    queryFn: ({ signal }) =>
      answer(api.POST("/plan", { body: JSON.parse(settled), headers: namespace.headers, signal })),
    enabled: settled !== "" && settled === now,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    gcTime: 60_000,
    refetchOnWindowFocus: false,
  });
  const { data, error } = query;
  const isBadInput = error instanceof ApiError && (error.status === 400 || error.status === 413);
  const problems = useMemo<readonly Problem[]>(() => {
    if (value === null) return misread.map((one) => ({ ...one, path: "" }));
    const said = isBadInput ? (error.fields.length ? error.fields : [{ path: "", message: error.message }]) : [];
    // Who has not begun yet knows that there is no name.
    const all = [...(isUntouched ? [] : aboutName(value, job)), ...said];
    return all.map(({ path, message }) => ({ path, message, ...placeOf(written, path) }));
  }, [written, value, misread, error, isBadInput, job, isUntouched]);
  return {
    plan: value && !error && data ? data : null,
    difference: data && !error ? (data.difference as unknown as Difference) : null,
    problems,
    isCurrent: settled === now && !query.isFetching,
    failure: isBadInput ? null : error,
  };
}

function asked(value: Definition, job: string | null): Definition {
  return { ...value, name: job ?? (value.name || UNNAMED) };
}

/** What the server is not asked, since it is asked with the right name. */
function aboutName(value: Definition, job: string | null): { path: string; message: string }[] {
  if (job === null) return value.name ? [] : [{ path: "name", message: "Give the job a name." }];
  if (value.name === undefined || value.name === job) return [];
  return [{ path: "name", message: `A job keeps its name: this one is ${job}. Copy it to have it under another.` }];
}
