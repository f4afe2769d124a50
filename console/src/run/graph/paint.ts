/** What lies behind the tasks that can be read: edges, and from far away the tasks themselves, as blocks of colour. */

import type { Tone } from "../../lib/states";
import { push } from "../tasks";
import { type Camera, inSight, isNear, type Part, type Size } from "./camera";
import { HEIGHT, type Layout, WIDTH } from "./layout";

export interface Palette {
  edge: string;
  lit: string;
  ground: string;
  ring: string;
  tones: Readonly<Record<Tone, string>>;
}

export interface Picture {
  layout: Layout;
  edges: readonly (readonly [number, number])[];
  looks: readonly { tone: Tone; glyph: string }[];
  /** The vertex whose edges stand out. */
  chosen: number | null;
  /** Where something is looked for: what does not match is faint. */
  found: ReadonlySet<number> | null;
}

/** So many edges are drawn at most; of more, every n-th: from afar nobody can tell them apart. */
const EDGES_MOST = 1_500;
const GLYPHS_FROM = 0.25;

export function paint(
  context: CanvasRenderingContext2D,
  picture: Picture,
  palette: Palette,
  camera: Camera,
  view: Size,
  density: number,
): void {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, view.width * density, view.height * density);
  const { scale } = camera;
  context.setTransform(density * scale, 0, 0, density * scale, camera.x * density, camera.y * density);
  const part = inSight(camera, view, 20);
  const near = isNear(scale, picture.looks.length);
  paintEdges(context, picture, palette, part, scale, near);
  if (!near) paintBlocks(context, picture, palette, part, scale);
}

function paintEdges(
  context: CanvasRenderingContext2D,
  { layout, edges, chosen }: Picture,
  palette: Palette,
  part: Part,
  scale: number,
  near: boolean,
): void {
  const seen: number[] = [];
  const lit: number[] = [];
  edges.forEach(([from, to], number) => {
    if (from === chosen || to === chosen) lit.push(number);
    else if (crosses(layout, from, to, part)) seen.push(number);
  });
  const stride = Math.ceil(seen.length / EDGES_MOST);
  const drawn = stride > 1 ? seen.filter((_, index) => index % stride === 0) : seen;
  context.lineWidth = Math.min(2.5, (near ? 1.4 : 1) / scale);
  context.strokeStyle = palette.edge;
  context.fillStyle = palette.edge;
  context.globalAlpha = near ? 1 : 0.55;
  trace(context, layout, edges, drawn, near);
  context.globalAlpha = 1;
  context.lineWidth = Math.min(6, 2 / scale);
  context.strokeStyle = palette.lit;
  context.fillStyle = palette.lit;
  trace(context, layout, edges, lit, near);
}

function trace(
  context: CanvasRenderingContext2D,
  layout: Layout,
  edges: Picture["edges"],
  numbers: readonly number[],
  near: boolean,
): void {
  if (numbers.length === 0) return;
  context.beginPath();
  for (const number of numbers) {
    const [from, to] = edges[number] ?? [0, 0];
    curve(context, layout, from, to, layout.bends[number] ?? [], near);
  }
  context.stroke();
  if (!near) return;
  context.beginPath();
  for (const number of numbers) {
    const to = edges[number]?.[1] ?? 0;
    const x = layout.x[to] ?? 0;
    const y = (layout.y[to] ?? 0) + HEIGHT / 2;
    context.moveTo(x, y);
    context.lineTo(x - 8, y - 4);
    context.lineTo(x - 8, y + 4);
  }
  context.fill();
}

function curve(
  context: CanvasRenderingContext2D,
  layout: Layout,
  from: number,
  to: number,
  bends: readonly number[],
  near: boolean,
): void {
  const x = (layout.x[from] ?? 0) + WIDTH;
  const y = (layout.y[from] ?? 0) + HEIGHT / 2;
  const endX = (layout.x[to] ?? 0) - (near ? 6 : 0);
  const endY = (layout.y[to] ?? 0) + HEIGHT / 2;
  context.moveTo(x, y);
  if (!near) {
    context.lineTo(endX, endY);
    return;
  }
  let lastX = x;
  let lastY = y;
  const bow = (toX: number, toY: number) => {
    const half = (toX - lastX) / 2;
    context.bezierCurveTo(lastX + half, lastY, toX - half, toY, toX, toY);
    lastX = toX;
    lastY = toY;
  };
  for (let at = 0; at + 1 < bends.length; at += 2) {
    const toX = bends[at] ?? 0;
    if (toX > lastX + 1 && toX < endX - 1) bow(toX, bends[at + 1] ?? 0);
  }
  bow(endX, endY);
}

function crosses(layout: Layout, from: number, to: number, part: Part): boolean {
  const x = layout.x[from] ?? 0;
  const y = layout.y[from] ?? 0;
  const endX = layout.x[to] ?? 0;
  const endY = layout.y[to] ?? 0;
  return (
    Math.min(x, endX) < part.right &&
    Math.max(x, endX) + WIDTH > part.left &&
    Math.min(y, endY) < part.bottom &&
    Math.max(y, endY) + HEIGHT > part.top
  );
}

function paintBlocks(
  context: CanvasRenderingContext2D,
  { layout, looks, chosen, found }: Picture,
  palette: Palette,
  part: Part,
  scale: number,
): void {
  const clear = new Map<string, number[]>();
  const faint = new Map<string, number[]>();
  looks.forEach(({ tone }, vertex) => {
    const x = layout.x[vertex] ?? 0;
    const y = layout.y[vertex] ?? 0;
    if (x > part.right || x + WIDTH < part.left || y > part.bottom || y + HEIGHT < part.top) return;
    push(found === null || found.has(vertex) ? clear : faint, palette.tones[tone], vertex);
  });
  for (const [colours, alpha] of [
    [faint, 0.2],
    [clear, 1],
  ] as const) {
    context.globalAlpha = alpha;
    for (const [colour, vertices] of colours) {
      context.fillStyle = colour;
      for (const vertex of vertices) context.fillRect(layout.x[vertex] ?? 0, layout.y[vertex] ?? 0, WIDTH, HEIGHT);
    }
  }
  if (scale >= GLYPHS_FROM) paintGlyphs(context, layout, looks, palette, [...clear.values()].flat());
  if (chosen === null) return;
  context.strokeStyle = palette.ring;
  context.lineWidth = 3 / scale;
  const pad = 3 / scale;
  context.strokeRect((layout.x[chosen] ?? 0) - pad, (layout.y[chosen] ?? 0) - pad, WIDTH + 2 * pad, HEIGHT + 2 * pad);
}

function paintGlyphs(
  context: CanvasRenderingContext2D,
  layout: Layout,
  looks: Picture["looks"],
  palette: Palette,
  vertices: readonly number[],
): void {
  context.fillStyle = palette.ground;
  context.font = `${HEIGHT * 0.7}px sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const vertex of vertices) {
    const glyph = looks[vertex]?.glyph ?? "";
    context.fillText(glyph, (layout.x[vertex] ?? 0) + WIDTH / 2, (layout.y[vertex] ?? 0) + HEIGHT / 2);
  }
}
