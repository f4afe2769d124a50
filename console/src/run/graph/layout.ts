/** Where everything stands. The graph runs from left to right. */

export const WIDTH = 180;
export const HEIGHT = 50;
export const GAP_X = 56;
export const GAP_Y = 18;
export const MARGIN = 24;
/** The title of an open group stands above what is in it. */
export const BOX_HEAD = 26;
export const BOX_PAD = 12;

export interface Box {
  group: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  width: number;
  height: number;
  /** The left upper corner of each vertex. */
  x: readonly number[];
  y: readonly number[];
  /** How many steps from a first task, along the longest way. */
  level: readonly number[];
  boxes: readonly Box[];
  /** Where each edge bends, as x, y, x, y, …; nothing where it goes straight on. */
  bends: readonly (readonly number[])[];
  tookMs: number;
}

export interface ToArrange {
  ids: readonly string[];
  groups: readonly string[];
  edges: readonly (readonly [number, number])[];
}

/** The length of the longest way to each vertex. They are in topological order; what leads back is left out. */
export function levelsOf(count: number, edges: ToArrange["edges"]): number[] {
  const level = new Array<number>(count).fill(0);
  const sorted = edges.filter(([from, to]) => from < to).sort((a, b) => a[0] - b[0]);
  for (const [from, to] of sorted) level[to] = Math.max(level[to] ?? 0, (level[from] ?? 0) + 1);
  return level;
}
