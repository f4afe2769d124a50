/** What one begins with: the version in force, a copy of a job, a template, or next to nothing. */

import { useQuery } from "@tanstack/react-query";
import { answer, api, type Shape } from "../api/client";
import type { OwnNamespace } from "../api/namespace";
import { ApiError } from "../api/problem";
import { zone } from "../lib/time";
import type { Definition } from "./definition";
import { written } from "./document";

/** What a new version is based on. */
export interface Base {
  /** Null where the job is gone, so that it is created again. */
  version: number | null;
  definition: Definition;
  text: string;
}

export interface Start {
  text: string;
  base: Base | null;
}

export type Origin = { kind: "nothing" } | { kind: "job" | "template" | "either"; name: string };

/** Such as `job:daily-report`, `template:nightly`, or the name of either. */
export function originOf(from: string): Origin {
  if (!from) return { kind: "nothing" };
  const [, kind, name] = /^(job|template):(.*)$/.exec(from) ?? [];
  return name ? { kind: kind as "job" | "template", name } : { kind: "either", name: from };
}

export function useStart(job: string | null, from: string, namespace: OwnNamespace) {
  return useQuery({
    queryKey: ["start", namespace.name, job, from],
    queryFn: () => (job === null ? startOfNew(originOf(from), namespace) : startOfEdit(job, namespace)),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
}

async function startOfEdit(job: string, namespace: OwnNamespace): Promise<Start> {
  const version = await newestOf(job, namespace);
  const definition = version?.definition;
  if (!version || !definition) throw new ApiError(404, "Not Found", `There is no job ${job}.`);
  const base = { version: version.version, definition, text: written(definition) };
  return { text: base.text, base };
}

async function startOfNew(origin: Origin, namespace: OwnNamespace): Promise<Start> {
  if (origin.kind === "nothing") return { text: written(BLANK), base: null };
  if (origin.kind === "template") return ofTemplate(origin.name);
  try {
    const version = await newestOf(origin.name, namespace);
    if (version?.definition) {
      return { text: written({ ...version.definition, name: `${origin.name}-copy` }), base: null };
    }
  } catch (error) {
    if (origin.kind === "job" || !(error instanceof ApiError && error.status === 404)) throw error;
  }
  if (origin.kind === "either") return ofTemplate(origin.name);
  throw new ApiError(404, "Not Found", `There is no job ${origin.name}.`);
}

function ofTemplate(name: string): Start {
  return { text: written({ name: "", template: name }), base: null };
}

const BLANK: Definition = {
  name: "",
  schedule: { cron: "0 6 * * *", timezone: zone },
  tasks: [{ id: "main", run: { command: "echo Hello" } }],
};

async function newestOf(job: string, namespace: OwnNamespace): Promise<Shape<"Version"> | undefined> {
  return (await versionsOf(job, namespace, 1))[0];
}

/** The newest few versions, newest first. */
export async function versionsOf(job: string, namespace: OwnNamespace, limit: number): Promise<Shape<"Version">[]> {
  const found = await answer(
    api.GET("/jobs/{job}/versions", { params: { path: { job }, query: { limit } }, headers: namespace.headers }),
  );
  return found.items;
}
