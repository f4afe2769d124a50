/** How long the last runs took, and how long they waited before they started. */

import { useEffect, useMemo, useRef } from "react";
import { useLocation } from "wouter";
import type { Shape } from "../api/client";
import { useTheme } from "../lib/theme";
import { between, inFull, lasting } from "../lib/time";

type Run = Shape<"Run">;

interface Bar {
  run: Run;
  seconds: number;
  waited: number;
}

export function barsOf(runs: readonly Run[], now = Date.now()): Bar[] {
  return runs.flatMap((run) => {
    const took = between(run.startedAt, run.endedAt, now);
    if (took === null) return [];
    return [{ run, seconds: took / 1000, waited: Math.max(0, between(run.fireAt, run.startedAt) ?? 0) / 1000 }];
  });
}

export function Durations({ job, runs }: { job: string; runs: readonly Run[] }) {
  const bars = useMemo(() => barsOf(runs), [runs]);
  const place = useRef<HTMLDivElement>(null);
  const [theme] = useTheme();
  const [, go] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: its colours are read anew when the theme changes
  useEffect(() => {
    const element = place.current;
    if (!element || bars.length === 0) return;
    let end = () => {};
    let gone = false;
    void import("./plot").then(({ plotBars }) => {
      if (!gone) end = plotBars(element, bars, (at) => go(`/jobs/${job}/runs/${bars[at]?.run.runId}`));
    });
    return () => {
      gone = true;
      end();
    };
  }, [bars, job, go, theme]);
  if (bars.length === 0) return <p className="soft">None of the last runs has started yet.</p>;
  const longest = bars.reduce((most, bar) => (bar.seconds > most.seconds ? bar : most));
  const sorted = bars.map((bar) => bar.seconds).sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const words = `Half of the last ${bars.length} took less than ${lasting(median * 1000)}; the longest took ${lasting(
    longest.seconds * 1000,
  )}, on ${inFull(longest.run.fireAt)}.`;
  return (
    <div className="stack">
      <p className="soft">{words}</p>
      <div ref={place} className="plot" role="img" aria-label={`Durations of the last runs. ${words}`} />
    </div>
  );
}
