/** What was written and not saved when somebody went back: kept as long as the session, for when they return. */

import { cache } from "../api/cache";
import type { OwnNamespace } from "../api/namespace";
import type { Base } from "./start";

export interface Draft {
  text: string;
  /** What it was made from, which may not be the newest any more. */
  base: Base | null;
}

cache.setQueryDefaults(["draft"], { gcTime: Number.POSITIVE_INFINITY, staleTime: Number.POSITIVE_INFINITY });

/** `of` is the address of what was begun: a job, or what a new one was made of. */
function keyOf(of: string, namespace: OwnNamespace): string[] {
  return ["draft", namespace.name, of];
}

export function keepDraft(of: string, namespace: OwnNamespace, draft: Draft): void {
  cache.setQueryData(keyOf(of, namespace), draft);
}

export function draftOf(of: string, namespace: OwnNamespace): Draft | null {
  return cache.getQueryData<Draft>(keyOf(of, namespace)) ?? null;
}

export function dropDraft(of: string, namespace: OwnNamespace): void {
  cache.removeQueries({ queryKey: keyOf(of, namespace), exact: true });
}
