/** Which part of the graph is seen, and how large. */

import { HEIGHT, type Layout, WIDTH } from "./layout";

export interface Camera {
  /** The graph's origin on the screen. */
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export const SCALE_MAX = 1.6;
/** Below it, names cannot be read: tasks are drawn as blocks instead. */
export const SCALE_NEAR = 0.5;
const FIT_MAX = 1;
const FIT_PAD = 8;

export function fitted(layout: Size, view: Size): Camera {
  const scale = Math.min(
    FIT_MAX,
    (view.width - 2 * FIT_PAD) / layout.width,
    (view.height - 2 * FIT_PAD) / layout.height,
  );
  return { scale, x: (view.width - layout.width * scale) / 2, y: (view.height - layout.height * scale) / 2 };
}

/** So few can be in the page all at once, however small they are. */
export const ALL_NEAR = 120;
const READABLE = 0.6;

export function isNear(scale: number, count: number): boolean {
  return scale >= SCALE_NEAR || count <= ALL_NEAR;
}

/** What is seen first: all of it; of a few tasks that would be too small to read, or of a long thread, the beginning. */
export function opening(layout: Layout, view: Size): Camera {
  const whole = fitted(layout, view);
  const isThread = Math.min(layout.width / view.width, layout.height / view.height) * whole.scale < 0.25;
  const isFew = layout.x.length <= ALL_NEAR;
  if (whole.scale >= (isFew ? READABLE : SCALE_NEAR) || !(isThread || isFew)) return whole;
  const scale = 0.75;
  const begin = (length: number, room: number) => (length * scale > room ? FIT_PAD : (room - length * scale) / 2);
  return { scale, x: begin(layout.width, view.width), y: begin(layout.height, view.height) };
}

/** Larger or smaller, with what is at this place staying there. */
export function zoomed(camera: Camera, factor: number, at: { x: number; y: number }, least: number): Camera {
  const scale = Math.min(SCALE_MAX, Math.max(least, camera.scale * factor));
  const ratio = scale / camera.scale;
  return { scale, x: at.x - (at.x - camera.x) * ratio, y: at.y - (at.y - camera.y) * ratio };
}

/** Never so far that nothing is left to see. */
export function held(camera: Camera, layout: Size, view: Size): Camera {
  const keep = 60;
  const bound = (value: number, length: number, room: number) =>
    Math.min(room - keep, Math.max(keep - length * camera.scale, value));
  return {
    ...camera,
    x: bound(camera.x, layout.width, view.width),
    y: bound(camera.y, layout.height, view.height),
  };
}

/** Moved just so far that the vertex is in sight, and large enough to read. */
export function showing(camera: Camera, layout: Layout, vertex: number, view: Size, centre = false): Camera {
  const isFar = !isNear(camera.scale, layout.x.length);
  const scale = isFar ? 0.9 : camera.scale;
  const along = (origin: number, start: number, length: number, room: number) => {
    if (centre || isFar) return (room - length) / 2 - start;
    const pad = Math.min(40, Math.max(0, (room - length) / 2));
    if (origin + start < pad) return pad - start;
    return origin + start + length > room - pad ? room - pad - start - length : origin;
  };
  return {
    scale,
    x: along(camera.x, (layout.x[vertex] ?? 0) * scale, WIDTH * scale, view.width),
    y: along(camera.y, (layout.y[vertex] ?? 0) * scale, HEIGHT * scale, view.height),
  };
}

export interface Part {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** The part of the graph that is in sight, and so much around it. */
export function inSight(camera: Camera, view: Size, around = 0): Part {
  return {
    left: (-camera.x - around) / camera.scale,
    top: (-camera.y - around) / camera.scale,
    right: (view.width - camera.x + around) / camera.scale,
    bottom: (view.height - camera.y + around) / camera.scale,
  };
}

export function verticesIn(layout: Layout, part: Part): number[] {
  const found: number[] = [];
  for (let vertex = 0; vertex < layout.x.length; vertex += 1) {
    const x = layout.x[vertex] ?? 0;
    const y = layout.y[vertex] ?? 0;
    if (x < part.right && x + WIDTH > part.left && y < part.bottom && y + HEIGHT > part.top) found.push(vertex);
  }
  return found;
}

export function vertexAt(layout: Layout, x: number, y: number): number | null {
  for (let vertex = 0; vertex < layout.x.length; vertex += 1) {
    const left = layout.x[vertex] ?? 0;
    const top = layout.y[vertex] ?? 0;
    if (x >= left && x <= left + WIDTH && y >= top && y <= top + HEIGHT) return vertex;
  }
  return null;
}
