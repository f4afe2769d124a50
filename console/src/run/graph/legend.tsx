/** What the colours mean, and how many tasks are in each state; a state that is pressed stands out in the graph. */

import { lookOf } from "../../lib/states";

const ORDER = [
  "running",
  "retrying",
  "queued",
  "waiting",
  "succeeded",
  "failed",
  "upstream_failed",
  "skipped",
  "cancelled",
];

interface LegendProps {
  counts: ReadonlyMap<string, number>;
  pressed: string;
  onPress: (state: string) => void;
}

export function Legend({ counts, pressed, onPress }: LegendProps) {
  const known = ORDER.filter((state) => counts.has(state) || state === pressed);
  const others = [...counts.keys()].filter((state) => !ORDER.includes(state));
  return (
    <fieldset className="graph-legend" aria-label="States of the tasks">
      {[...known, ...others].map((state) => {
        const { label, tone, glyph } = lookOf(state);
        return (
          <button
            key={state}
            type="button"
            className="legend-state"
            data-tone={tone}
            aria-pressed={pressed === state}
            onClick={() => onPress(pressed === state ? "" : state)}
          >
            <span className="swatch" aria-hidden="true">
              {glyph}
            </span>
            {label} <span className="number faint">{(counts.get(state) ?? 0).toLocaleString()}</span>
          </button>
        );
      })}
    </fieldset>
  );
}
