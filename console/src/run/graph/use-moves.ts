/** Going about the graph: with the keys from task to task, with a press into one, and through what was found. */

import { type KeyboardEvent, type MouseEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { opening, showing, vertexAt } from "./camera";
import { stepFrom } from "./keys";
import { groupVertex } from "./structure";
import type { Hand } from "./use-camera";
import type { Laid } from "./use-layout";

const STEP = 1.35;

interface Ways {
  laid: Laid;
  hand: Hand;
  /** The vertex that is open beside the graph. */
  place: number | null;
  onOpen: (task: string) => void;
  onToggle: (group: string, isClosed: boolean) => void;
}

export interface Moves {
  /** The one that the tab key comes to. */
  current: number;
  press: (event: KeyboardEvent) => void;
  click: (event: MouseEvent) => void;
  toggle: (group: string, isClosed: boolean) => void;
  next: (found: ReadonlySet<number> | null) => void;
  resized: () => void;
}

export function useMoves({ laid, hand, place, onOpen, onToggle }: Ways): Moves {
  const { structure, layout } = laid;
  const [chosen, setCurrent] = useState(place ?? 0);
  const current = Math.min(chosen, structure.vertices.length - 1);
  const toggle = usePlacing(laid, hand, place, onToggle);
  const wanted = useRef<number | null>(null);
  // Only now is the button in the page.
  useLayoutEffect(() => {
    if (wanted.current === null) return;
    const node = hand.view.current?.querySelector<HTMLElement>(`[data-place="${wanted.current}"]`);
    wanted.current = null;
    node?.focus({ preventScroll: true });
  });
  const show = (vertex: number, centre = false) => {
    setCurrent(vertex);
    hand.move(showing(hand.camera(), layout, vertex, hand.size(), centre));
  };
  const enter = (vertex: number) => {
    const one = structure.vertices[vertex];
    setCurrent(vertex);
    if (one?.kind === "group") toggle(one.label, false);
    else if (one) onOpen(one.id);
  };
  const press = (event: KeyboardEvent) => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const zooms: Record<string, () => void> = {
      "+": () => hand.zoom(STEP),
      "-": () => hand.zoom(1 / STEP),
      "0": hand.fit,
    };
    const step = stepFrom(structure, layout, current, event.key);
    if (!(event.key in zooms) && step === null) return;
    event.preventDefault();
    zooms[event.key]?.();
    if (step === null) return;
    wanted.current = step;
    show(step);
  };
  const click = (event: MouseEvent) => {
    if (hand.wasDragged()) return;
    const target = event.target as HTMLElement;
    const node = target.closest<HTMLElement>("[data-place]");
    const hit = node ? Number(node.dataset.place) : target.closest("button") ? null : painted(event, laid, hand);
    if (hit !== null) enter(hit);
  };
  const next = (found: ReadonlySet<number> | null) => {
    const all = [...(found ?? [])].sort((a, b) => a - b);
    const to = all.find((vertex) => vertex > current) ?? all[0];
    if (to !== undefined) show(to, true);
  };
  const resized = () => {
    if (place !== null) hand.move(showing(hand.camera(), layout, place, hand.size()));
    else if (!hand.isTouched()) hand.move(opening(layout, hand.size()));
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: another task was opened, here or elsewhere
  useEffect(() => {
    if (place !== null) resized();
  }, [place]);
  return { current, press, click, toggle, next, resized };
}

/** The vertex under the pointer, where it is only painted. */
function painted(event: MouseEvent, { layout }: Laid, hand: Hand): number | null {
  const box = hand.view.current?.getBoundingClientRect();
  if (!box || hand.shown.isNear) return null;
  const { x, y, scale } = hand.camera();
  return vertexAt(layout, (event.clientX - box.left - x) / scale, (event.clientY - box.top - y) / scale);
}

/** Places the camera for every new layout: a group that is opened or closed stays where it is on the screen. */
function usePlacing(laid: Laid, hand: Hand, place: number | null, onToggle: Ways["onToggle"]): Ways["onToggle"] {
  const held = useRef<{ group: string; x: number; y: number } | null>(null);
  const isFirst = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is placed anew only with a new layout
  useLayoutEffect(() => {
    const at = held.current && cornerOf(laid, held.current.group);
    const { scale } = hand.camera();
    if (held.current && at) {
      hand.place({ scale, x: held.current.x - at.x * scale, y: held.current.y - at.y * scale });
    } else if (isFirst.current || !hand.isTouched()) {
      const start = opening(laid.layout, hand.size());
      hand.place(place === null ? start : showing(start, laid.layout, place, hand.size()));
    } else hand.place(hand.camera());
    isFirst.current = false;
    held.current = null;
  }, [laid]);
  return (group, isClosed) => {
    const at = cornerOf(laid, group);
    const { x, y, scale } = hand.camera();
    held.current = at && { group, x: x + at.x * scale, y: y + at.y * scale };
    onToggle(group, isClosed);
  };
}

/** The corner of a group, closed or open. */
function cornerOf({ structure, layout }: Laid, group: string): { x: number; y: number } | null {
  const box = layout.boxes.find((one) => one.group === group);
  if (box) return box;
  const vertex = structure.places.get(groupVertex(group));
  return vertex === undefined ? null : { x: layout.x[vertex] ?? 0, y: layout.y[vertex] ?? 0 };
}
