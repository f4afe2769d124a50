/** Putting a definition in force, once, on top of the version that it was made from. */

import { answer, api, type Shape } from "../api/client";
import type { OwnNamespace } from "../api/namespace";
import { ApiError } from "../api/problem";
import type { Definition } from "./definition";
import { written } from "./document";
import { type Base, versionsOf } from "./start";

const NEWER_MAX = 20;

/** Somebody else's versions, newest first, that came after the one this is based on. */
export interface Newer {
  base: Base;
  versions: readonly Shape<"Version">[];
}

export type Saved = { job: Shape<"Job"> } | { newer: Newer };

interface Saving {
  job: string | null;
  base: Base | null;
  definition: Definition;
  /** The same for the same attempt, so that one whose answer was lost is not made twice. */
  key: string;
  namespace: OwnNamespace;
}

export async function save({ job, base, definition, key, namespace }: Saving): Promise<Saved> {
  const headers = { ...namespace.headers, "Idempotency-Key": key };
  const body = definition as never;
  if (job === null) return { job: await answer(api.POST("/jobs", { body, headers })) };
  const condition = base?.version ? { "If-Match": String(base.version) } : { "If-None-Match": "*" };
  try {
    const path = { job };
    return {
      job: await answer(api.PUT("/jobs/{job}", { params: { path }, body, headers: { ...headers, ...condition } })),
    };
  } catch (error) {
    if (error instanceof ApiError && error.status === 412) return { newer: await newerThan(job, base, namespace) };
    throw error;
  }
}

async function newerThan(job: string, base: Base | null, namespace: OwnNamespace): Promise<Newer> {
  const found = await versionsOf(job, namespace, NEWER_MAX);
  const versions = found.filter((one) => one.version > (base?.version ?? 0));
  const [newest] = found;
  const definition = newest?.definition ?? {};
  return {
    base: {
      version: newest?.definition ? newest.version : null,
      definition,
      text: newest?.definition ? written(definition) : "",
    },
    versions,
  };
}
