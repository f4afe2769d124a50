/** Lays a graph out: carefully where it is small, quickly where it is large. */

import { Graph, layout as layWithDagre } from "@dagrejs/dagre";
import { layered } from "./layered";
import {
  BOX_HEAD,
  BOX_PAD,
  type Box,
  GAP_X,
  GAP_Y,
  HEIGHT,
  type Layout,
  levelsOf,
  MARGIN,
  type ToArrange,
  WIDTH,
} from "./layout";
import { groupsAround } from "./structure";

export const CAREFUL_MOST = 200;
const CAREFUL_EDGES_MOST = 600;

export function arrange(asked: ToArrange): Layout {
  const beganAt = performance.now();
  return { ...found(asked), tookMs: performance.now() - beganAt };
}

function found(asked: ToArrange): Omit<Layout, "tookMs"> {
  if (asked.ids.length > CAREFUL_MOST || asked.edges.length > CAREFUL_EDGES_MOST) return layered(asked);
  try {
    return careful(asked);
  } catch {
    return layered(asked); // safe: any layout shows the same graph
  }
}

function careful({ ids, groups, edges }: ToArrange): Omit<Layout, "tookMs"> {
  const graph = new Graph({ compound: true });
  graph.setGraph({ rankdir: "LR", nodesep: GAP_Y, ranksep: GAP_X, edgesep: 12, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const around = new Set(groups.flatMap(groupsAround));
  for (const group of around) {
    graph.setNode(`box:${group}`, {});
    const outer = groupsAround(group).at(-2);
    if (outer) graph.setParent(`box:${group}`, `box:${outer}`);
  }
  ids.forEach((_, vertex) => {
    graph.setNode(String(vertex), { width: WIDTH, height: HEIGHT });
    if (groups[vertex]) graph.setParent(String(vertex), `box:${groups[vertex]}`);
  });
  for (const [from, to] of edges) graph.setEdge(String(from), String(to));
  layWithDagre(graph);
  const at = ids.map((_, vertex) => graph.node(String(vertex)) as { x: number; y: number });
  const bends = edges.map(([from, to]) => {
    const { points = [] } = graph.edge(String(from), String(to)) as { points?: { x: number; y: number }[] };
    return points.slice(1, -1).flatMap(({ x, y }) => [x, y]);
  });
  const x = at.map((node) => node.x - WIDTH / 2);
  const y = at.map((node) => node.y - HEIGHT / 2);
  const boxes = boxesOf([...around], groups, x, y);
  return settled({ x, y, boxes, bends, level: levelsOf(ids.length, edges) });
}

/** A box lies around what is in it: inner ones are made first, for outer ones lie around those. */
function boxesOf(all: readonly string[], groups: readonly string[], x: readonly number[], y: readonly number[]): Box[] {
  const made: Box[] = [];
  for (const group of all.toSorted((a, b) => b.split(".").length - a.split(".").length)) {
    const inside = made.filter((box) => box.group.startsWith(`${group}.`));
    groups.forEach((own, vertex) => {
      if (own === group) inside.push({ group, x: x[vertex] ?? 0, y: y[vertex] ?? 0, width: WIDTH, height: HEIGHT });
    });
    const left = Math.min(...inside.map((box) => box.x)) - BOX_PAD;
    const top = Math.min(...inside.map((box) => box.y)) - BOX_HEAD;
    const width = Math.max(...inside.map((box) => box.x + box.width)) + BOX_PAD - left;
    const height = Math.max(...inside.map((box) => box.y + box.height)) + BOX_PAD - top;
    made.push({ group, x: left, y: top, width, height });
  }
  return made.reverse();
}

/** Moved so that nothing lies to the left of or above the margin. */
function settled(found: Pick<Layout, "x" | "y" | "boxes" | "bends" | "level">): Omit<Layout, "tookMs"> {
  const { boxes } = found;
  const dx = MARGIN - Math.min(...found.x, ...boxes.map((box) => box.x));
  const dy = MARGIN - Math.min(...found.y, ...boxes.map((box) => box.y));
  const x = found.x.map((left) => left + dx);
  const y = found.y.map((top) => top + dy);
  const moved = boxes.map((box) => ({ ...box, x: box.x + dx, y: box.y + dy }));
  return {
    x,
    y,
    boxes: moved,
    bends: found.bends.map((points) => points.map((value, index) => value + (index % 2 ? dy : dx))),
    level: found.level,
    width: Math.max(...x.map((left) => left + WIDTH), ...moved.map((box) => box.x + box.width)) + MARGIN,
    height: Math.max(...y.map((top) => top + HEIGHT), ...moved.map((box) => box.y + box.height)) + MARGIN,
  };
}
