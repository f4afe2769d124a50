/** The states of runs and tasks: what they are called, how they look, and which of them are ends. */

export type Tone = "good" | "bad" | "busy" | "wait" | "muted" | "warn";

interface Look {
  label: string;
  tone: Tone;
  /** Says the state without colour. */
  glyph: string;
}

const LOOKS: Readonly<Record<string, Look>> = {
  planned: { label: "Planned", tone: "muted", glyph: "◌" },
  waiting: { label: "Waiting", tone: "wait", glyph: "◌" },
  queued: { label: "Queued", tone: "wait", glyph: "◔" },
  running: { label: "Running", tone: "busy", glyph: "▶" },
  retrying: { label: "Retrying", tone: "warn", glyph: "↻" },
  succeeded: { label: "Succeeded", tone: "good", glyph: "✓" },
  failed: { label: "Failed", tone: "bad", glyph: "✕" },
  upstream_failed: { label: "Upstream failed", tone: "bad", glyph: "⇡" },
  cancelled: { label: "Cancelled", tone: "muted", glyph: "⊘" },
  skipped: { label: "Skipped", tone: "muted", glyph: "↷" },
  void: { label: "Void", tone: "muted", glyph: "∅" },
  // Of a job:
  active: { label: "Active", tone: "good", glyph: "✓" },
  scheduled: { label: "Scheduled", tone: "good", glyph: "✓" },
  paused: { label: "Paused", tone: "warn", glyph: "‖" },
  deleted: { label: "Deleted", tone: "muted", glyph: "⊘" },
  // Of a row of the ledger:
  fired: { label: "Fired", tone: "good", glyph: "✓" },
  pending: { label: "Pending", tone: "wait", glyph: "◔" },
  missing: { label: "Missing", tone: "bad", glyph: "!" },
  extra: { label: "Extra", tone: "bad", glyph: "+" },
  expired: { label: "Expired", tone: "muted", glyph: "◌" },
  // Of a backfill or a scanned file:
  done: { label: "Done", tone: "good", glyph: "✓" },
  applied: { label: "Applied", tone: "good", glyph: "✓" },
  error: { label: "Error", tone: "bad", glyph: "✕" },
};

export function lookOf(state: string): Look {
  return LOOKS[state] ?? { label: state, tone: "muted", glyph: "·" };
}

const ENDS = new Set(["succeeded", "failed", "cancelled", "skipped", "void", "upstream_failed"]);

export function hasEnded(state: string): boolean {
  return ENDS.has(state);
}

export const RUN_STATES = ["queued", "running", "retrying", "succeeded", "failed", "cancelled", "skipped"] as const;
export type RunState = (typeof RUN_STATES)[number];
