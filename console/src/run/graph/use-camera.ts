/**
 * The camera and the hand on it. While it moves, only a transform and the canvas follow; what is in the page is chosen
 * anew when the camera has left the part that was chosen before.
 */

import { type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { type Camera, fitted, held, inSight, isNear, type Part, SCALE_NEAR, type Size, zoomed } from "./camera";
import type { Layout } from "./layout";

const AROUND = 160;
const MOVED_PX = 4;
const UNSEEN: Size = { width: 1_000, height: 560 };

export interface Shown {
  part: Part;
  isNear: boolean;
}

export interface Hand {
  view: RefObject<HTMLDivElement | null>;
  layer: RefObject<HTMLDivElement | null>;
  shown: Shown;
  camera: () => Camera;
  size: () => Size;
  /** With the next frame. */
  move: (next: Camera) => void;
  /** Before anything is shown. */
  place: (next: Camera) => void;
  zoom: (factor: number) => void;
  fit: () => void;
  redraw: () => void;
  /** Whether the pointer was dragged since it was put down: such a click is none. */
  wasDragged: () => boolean;
  /** Whether somebody has moved it. */
  isTouched: () => boolean;
}

interface Heard {
  draw: (camera: Camera, size: Size) => void;
  /** The field has another size than before. */
  resized: () => void;
}

export function useCamera(layout: Layout, heard: Heard): Hand {
  const view = useRef<HTMLDivElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const camera = useRef<Camera>({ x: 0, y: 0, scale: 1 });
  const size = useRef<Size>(UNSEEN);
  const frame = useRef(0);
  const dragged = useRef(false);
  const touched = useRef(false);
  const hears = useRef(heard);
  hears.current = heard;
  const [shown, setShown] = useState<Shown>({ part: inSight(camera.current, UNSEEN, AROUND), isNear: true });
  const shownNow = useRef(shown);

  const apply = useCallback(() => {
    frame.current = 0;
    const { x, y, scale } = camera.current;
    if (layer.current) layer.current.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    hears.current.draw(camera.current, size.current);
    const near = isNear(scale, layout.x.length);
    if (near !== shownNow.current.isNear || !covers(shownNow.current.part, camera.current, size.current)) {
      shownNow.current = { part: inSight(camera.current, size.current, AROUND), isNear: near };
      setShown(shownNow.current);
    }
  }, [layout]);
  const redraw = useCallback(() => {
    if (!frame.current) frame.current = requestAnimationFrame(apply);
  }, [apply]);
  const move = useCallback(
    (next: Camera) => {
      camera.current = held(next, layout, size.current);
      redraw();
    },
    [layout, redraw],
  );
  const place = useCallback(
    (next: Camera) => {
      camera.current = held(next, layout, size.current);
      apply();
    },
    [layout, apply],
  );
  const least = useCallback(() => Math.min(SCALE_NEAR / 2, fitted(layout, size.current).scale / 2), [layout]);
  const zoom = useCallback(
    (factor: number, at = { x: size.current.width / 2, y: size.current.height / 2 }) => {
      touched.current = true;
      move(zoomed(camera.current, factor, at, least()));
    },
    [move, least],
  );
  const fit = useCallback(() => move(fitted(layout, size.current)), [layout, move]);

  // Before anybody places the camera.
  useLayoutEffect(() => {
    const element = view.current;
    if (!element) return;
    const measure = () => {
      const { width, height } = size.current;
      size.current = { width: element.clientWidth || UNSEEN.width, height: element.clientHeight || UNSEEN.height };
      if (width === size.current.width && height === size.current.height) return;
      hears.current.resized();
      redraw();
    };
    measure();
    if (typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [redraw]);

  useEffect(() => {
    const element = view.current;
    if (!element) return;
    return handle(element, { camera: () => camera.current, move, zoom, dragged, touched });
  }, [move, zoom]);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);

  return useMemo(
    () => ({
      view,
      layer,
      shown,
      camera: () => camera.current,
      size: () => size.current,
      move,
      place,
      zoom,
      fit,
      redraw,
      wasDragged: () => dragged.current,
      isTouched: () => touched.current,
    }),
    [shown, move, place, zoom, fit, redraw],
  );
}

/** Whether the part holds all that is in sight, and not very much more. */
function covers(part: Part, camera: Camera, size: Size): boolean {
  const seen = inSight(camera, size);
  const isIn = part.left <= seen.left && part.top <= seen.top && part.right >= seen.right && part.bottom >= seen.bottom;
  return isIn && part.right - part.left < 3 * (seen.right - seen.left);
}

interface Handled {
  camera: () => Camera;
  move: (next: Camera) => void;
  zoom: (factor: number, at?: { x: number; y: number }) => void;
  dragged: { current: boolean };
  touched: { current: boolean };
}

/** Wheel, drag and pinch. */
function handle(element: HTMLElement, { camera, move, zoom, dragged, touched }: Handled): () => void {
  const down = new Map<number, { x: number; y: number }>();
  let begun = { x: 0, y: 0 };
  const within = (x: number, y: number) => {
    const box = element.getBoundingClientRect();
    return { x: x - box.left, y: y - box.top };
  };
  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    const step = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    zoom(Math.exp(-step * (event.ctrlKey ? 0.01 : 0.0016)), within(event.clientX, event.clientY));
  };
  const press = (event: PointerEvent) => {
    if (event.button > 0) return;
    if (down.size === 0) {
      dragged.current = false;
      begun = { x: event.clientX, y: event.clientY };
    }
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
  };
  const drag = (event: PointerEvent) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    const now = { x: event.clientX, y: event.clientY };
    if (!dragged.current) {
      if (Math.hypot(now.x - begun.x, now.y - begun.y) < MOVED_PX && down.size < 2) return;
      dragged.current = true;
      touched.current = true;
      element.setPointerCapture(event.pointerId);
    }
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const factor = Math.hypot(now.x - other.x, now.y - other.y) / Math.hypot(before.x - other.x, before.y - other.y);
      if (Number.isFinite(factor)) zoom(factor, within((now.x + other.x) / 2, (now.y + other.y) / 2));
    } else {
      const { x, y, scale } = camera();
      move({ scale, x: x + now.x - before.x, y: y + now.y - before.y });
    }
    down.set(event.pointerId, now);
  };
  const lift = (event: PointerEvent) => down.delete(event.pointerId);
  const stay = () => element.scrollTo(0, 0); // focus scrolls what it goes to into sight; the camera does that here
  element.addEventListener("wheel", wheel, { passive: false });
  element.addEventListener("pointerdown", press);
  element.addEventListener("pointermove", drag);
  element.addEventListener("pointerup", lift);
  element.addEventListener("pointercancel", lift);
  element.addEventListener("scroll", stay);
  return () => {
    element.removeEventListener("wheel", wheel);
    element.removeEventListener("pointerdown", press);
    element.removeEventListener("pointermove", drag);
    element.removeEventListener("pointerup", lift);
    element.removeEventListener("pointercancel", lift);
    element.removeEventListener("scroll", stay);
  };
}
