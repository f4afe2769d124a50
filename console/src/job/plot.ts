/** The charts, drawn by uPlot; loaded when one is first seen. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Shape } from "../api/client";
import { lookOf } from "../lib/states";
import { inFull, lasting } from "../lib/time";

interface Bar {
  run: Shape<"Run">;
  seconds: number;
  waited: number;
}

const HEIGHT = 200;

function colour(name: string): string {
  return resolved(getComputedStyle(document.documentElement).getPropertyValue(name).trim());
}

/** A canvas does not know `light-dark()`: let an element say which of the two it is. */
function resolved(value: string): string {
  const probe = document.createElement("span");
  probe.style.color = value;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** A bar for each run, in the colour of its state; what it waited is below it. Ends with the function it answers. */
export function plotBars(place: HTMLElement, bars: readonly Bar[], open: (at: number) => void): () => void {
  const tip = document.createElement("div");
  tip.className = "plot-tip";
  tip.hidden = true;
  const tones = new Map(
    ["good", "bad", "busy", "warn", "wait", "muted"].map((tone) => [tone, colour(`--${tone}-fill`)]),
  );
  const fills = bars.map((bar) => tones.get(lookOf(bar.run.state).tone) ?? "gray");
  const axis = { stroke: colour("--ink-soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const paths = uPlot.paths.bars?.({
    size: [0.72, 44],
    radius: 0.15,
    disp: { fill: { unit: 3, values: () => fills }, stroke: { unit: 3, values: () => fills } },
  } as Parameters<NonNullable<typeof uPlot.paths.bars>>[0]);
  const plot = new uPlot(
    {
      width: Math.max(240, place.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: [-0.6, bars.length - 0.4] },
        y: { range: (_u, _min, max) => [0, max * 1.1 || 1] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          values: (_u, at) => at.map((n) => label(bars[n])),
          space: 90,
          incrs: [1, 2, 5, 10, 20],
        },
        { ...axis, values: (_u, at) => at.map((n) => lasting(n * 1000)), size: 64 },
      ],
      series: [{}, { paths, points: { show: false } }],
      hooks: {
        setCursor: [
          (u) => {
            const at = u.cursor.idx;
            const bar = at === null || at === undefined ? undefined : bars[at];
            tip.hidden = !bar;
            if (!bar) return;
            tip.textContent = `${inFull(bar.run.fireAt)}: ${lookOf(bar.run.state).label.toLowerCase()} after ${lasting(
              bar.seconds * 1000,
            )}; started ${lasting(bar.waited * 1000)} after it was due`;
          },
        ],
      },
    },
    [bars.map((_, at) => at), bars.map((bar) => bar.seconds)],
    place,
  );
  place.append(tip);
  const click = () => {
    if (typeof plot.cursor.idx === "number") open(plot.cursor.idx);
  };
  plot.over.addEventListener("click", click);
  const sized = new ResizeObserver(() => plot.setSize({ width: Math.max(240, place.clientWidth), height: HEIGHT }));
  sized.observe(place);
  return () => {
    sized.disconnect();
    plot.destroy();
    tip.remove();
  };
}

function label(bar: Bar | undefined): string {
  return bar ? new Date(bar.run.fireAt).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" }) : "";
}
