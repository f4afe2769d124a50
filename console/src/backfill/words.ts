/** What a backfill is, in words. */

import type { Shape } from "../api/client";
import { inFull } from "../lib/time";

export type Backfill = Shape<"Backfill">;

export const WHAT: Readonly<Record<string, string>> = {
  missing: "Fires that are missing",
  failed: "Fires that are missing or whose run failed",
  all: "Every fire, also those that succeeded",
};

export function stretch(from: string, to: string): string {
  return `${inFull(from)} to ${inFull(to)}`;
}

export function ended(backfill: Backfill): number {
  return backfill.succeeded + backfill.failed + backfill.cancelled + backfill.skipped;
}

/** Such as "12 of 30 ended: 10 succeeded, 2 failed". */
export function howFar(backfill: Backfill): string {
  const parts = (["succeeded", "failed", "skipped", "cancelled"] as const).flatMap((state) =>
    backfill[state] ? [`${backfill[state]} ${state}`] : [],
  );
  const said = parts.length ? `: ${parts.join(", ")}` : "";
  return `${ended(backfill)} of ${backfill.count} ended${said}`;
}
