/** Where an arrow key leads from a vertex: along its edges, and up and down among those of its level. */

import type { Layout } from "./layout";
import type { Structure } from "./structure";

export function stepFrom(structure: Structure, layout: Layout, from: number, key: string): number | null {
  switch (key) {
    case "ArrowRight":
      return nearest(layout, from, structure.after[from] ?? []);
    case "ArrowLeft":
      return nearest(layout, from, structure.before[from] ?? []);
    case "ArrowDown":
      return beside(layout, from, 1);
    case "ArrowUp":
      return beside(layout, from, -1);
    case "Home":
      return 0;
    case "End":
      return structure.vertices.length - 1;
    default:
      return null;
  }
}

function nearest(layout: Layout, from: number, among: readonly number[]): number | null {
  const height = layout.y[from] ?? 0;
  let best: number | null = null;
  for (const one of among) {
    if (best === null || Math.abs((layout.y[one] ?? 0) - height) < Math.abs((layout.y[best] ?? 0) - height)) best = one;
  }
  return best;
}

function beside(layout: Layout, from: number, step: 1 | -1): number | null {
  const level = layout.level[from];
  const rank = (one: number) => (layout.y[one] ?? 0) * 1e6 + (layout.x[one] ?? 0);
  const own = rank(from);
  let best: number | null = null;
  for (let one = 0; one < layout.level.length; one += 1) {
    if (layout.level[one] !== level || (rank(one) - own) * step <= 0) continue;
    if (best === null || (rank(one) - rank(best)) * step < 0) best = one;
  }
  return best;
}
