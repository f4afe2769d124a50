/**
 * A layout for graphs of thousands: a column for each topological level, ordered so that edges cross little (each vertex
 * goes to the mean place of its neighbours, forth and back a few times). A level that is much higher than the graph is
 * wide is broken into several columns, so that the whole stays something to look at.
 */

import { GAP_X, GAP_Y, HEIGHT, type Layout, levelsOf, MARGIN, type ToArrange, WIDTH } from "./layout";

const SWEEPS = 4;
const GAP_WITHIN = 20;
const ASPECT = 1.8;
const ROWS_LEAST = 24;

export function layered({ ids, edges }: ToArrange): Omit<Layout, "tookMs"> {
  const level = levelsOf(ids.length, edges);
  const columns: number[][] = [];
  level.forEach((at, vertex) => {
    columns[at] ??= [];
    columns[at].push(vertex);
  });
  order(columns, ids.length, edges);
  return { ...place(columns, ids.length), level, boxes: [], bends: [] };
}

function order(columns: number[][], count: number, edges: ToArrange["edges"]): void {
  const before: number[][] = Array.from({ length: count }, () => []);
  const after: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) {
    after[from]?.push(to);
    before[to]?.push(from);
  }
  // Between 0 and 1, so that levels of different heights compare.
  const height = new Float64Array(count);
  const spread = (column: readonly number[]) => {
    column.forEach((vertex, row) => {
      height[vertex] = (row + 0.5) / column.length;
    });
  };
  columns.forEach(spread);
  const sort = (column: number[], neighbours: readonly number[][]) => {
    const wanted = new Map(column.map((vertex) => [vertex, mean(neighbours[vertex] ?? [], height, vertex)]));
    column.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0) || a - b);
    spread(column);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const column of columns) sort(column, before);
    for (const column of columns.toReversed()) sort(column, after);
  }
  for (const column of columns) sort(column, before);
}

function mean(neighbours: readonly number[], height: Float64Array, own: number): number {
  if (neighbours.length === 0) return height[own] ?? 0;
  let sum = 0;
  for (const one of neighbours) sum += height[one] ?? 0;
  return sum / neighbours.length;
}

function place(columns: readonly (readonly number[])[], count: number) {
  const x = new Array<number>(count).fill(0);
  const y = new Array<number>(count).fill(0);
  const most = rowsAtMost(columns, count);
  const step = HEIGHT + GAP_Y;
  const tallest = Math.min(most, Math.max(...columns.map((column) => column.length)));
  let left = MARGIN;
  for (const column of columns) {
    const parts = Math.ceil(column.length / most);
    const rows = Math.ceil(column.length / parts);
    const top = MARGIN + ((tallest - rows) * step) / 2;
    column.forEach((vertex, at) => {
      // Neighbours stay side by side: the parts are filled row by row.
      x[vertex] = left + (at % parts) * (WIDTH + GAP_WITHIN);
      y[vertex] = top + Math.floor(at / parts) * step;
    });
    left += parts * (WIDTH + GAP_WITHIN) - GAP_WITHIN + GAP_X;
  }
  return { x, y, width: left - GAP_X + MARGIN, height: 2 * MARGIN + tallest * step - GAP_Y };
}

/** How high a column may be for the whole to be about as wide as a screen is. */
function rowsAtMost(columns: readonly (readonly number[])[], count: number): number {
  const area = count * (WIDTH + GAP_WITHIN) * (HEIGHT + GAP_Y) + columns.length * GAP_X * (HEIGHT + GAP_Y);
  return Math.max(ROWS_LEAST, Math.ceil(Math.sqrt(area / ASPECT) / (HEIGHT + GAP_Y)));
}
