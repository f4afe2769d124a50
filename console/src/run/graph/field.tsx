/** The graph on its field: one looks around with the pointer, and goes from task to task with the keys. */

import {
  type CSSProperties,
  type KeyboardEvent,
  type MouseEvent,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { useSettled } from "../../lib/hooks";
import { lookOf } from "../../lib/states";
import { mappedOf, type Task } from "../tasks";
import { Boxes } from "./boxes";
import { type Camera, opening, type Size, showing, vertexAt, verticesIn } from "./camera";
import { Ink, usePalette } from "./ink";
import { stepFrom } from "./keys";
import { Legend } from "./legend";
import { Node } from "./node";
import { paint } from "./paint";
import { countStates, matching, seenOf } from "./seen";
import { groupVertex } from "./structure";
import { Toolbar } from "./toolbar";
import { useCamera } from "./use-camera";
import type { Laid } from "./use-layout";

interface FieldProps {
  laid: Laid;
  tasks: readonly Task[];
  chosen: string;
  onOpen: (task: string) => void;
  groups: readonly string[];
  closed: ReadonlySet<string>;
  onClosed: (closed: ReadonlySet<string>) => void;
}

export function Field({ laid, tasks, chosen, onOpen, groups, closed, onClosed }: FieldProps) {
  const { structure, layout } = laid;
  const [search, setSearch] = useState("");
  const [pressed, setPressed] = useState("");
  const looked = useSettled(search.trim().toLowerCase(), 150);
  const byId = useMemo(() => new Map(tasks.map((task) => [task.id, task])), [tasks]);
  const seen = useMemo(() => seenOf(structure, byId), [structure, byId]);
  const looks = useMemo(() => seen.map(({ state }) => lookOf(state)), [seen]);
  const counts = useMemo(() => countStates(tasks), [tasks]);
  const found = useMemo(
    () => (looked || pressed ? matching(structure, byId, looked, pressed) : null),
    [structure, byId, looked, pressed],
  );
  const place = chosen ? (structure.places.get(mappedOf(chosen) ?? chosen) ?? null) : null;
  const [current, setCurrent] = useState(place ?? 0);
  const canvas = useRef<HTMLCanvasElement>(null);
  const ink = usePalette();
  const hand = useCamera(layout, { draw: (camera, size) => draw(camera, size), resized: () => resized() });
  const here = Math.min(current, structure.vertices.length - 1);

  const draw = (camera: Camera, size: Size) => {
    const element = canvas.current;
    const context = ink.palette && element?.getContext("2d");
    if (!context || !element || !ink.palette) return;
    const density = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(size.width * density), Math.round(size.height * density)];
    if (element.width !== width || element.height !== height) Object.assign(element, { width, height });
    paint(context, { layout, edges: structure.edges, looks, chosen: place, found }, ink.palette, camera, size, density);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is painted has changed
  useEffect(hand.redraw, [seen, found, place, layout, ink.palette]);

  const resized = () => {
    if (place !== null) hand.move(showing(hand.camera(), layout, place, hand.size()));
    else if (!hand.isTouched()) hand.move(opening(layout, hand.size()));
  };
  const held = useRef<{ group: string; x: number; y: number } | null>(null);
  const before = useRef<Laid | null>(null);
  useLayoutEffect(() => {
    const first = before.current === null;
    before.current = laid;
    if (first) {
      const start = opening(layout, hand.size());
      hand.move(place === null ? start : showing(start, layout, place, hand.size()));
      return;
    }
    // Where a group was opened or closed, it stays where it was on the screen.
    const at = held.current && cornerOf(laid, held.current.group);
    const { x, y, scale } = hand.camera();
    if (held.current && at) {
      hand.move({ scale, x: x + held.current.x - (x + at.x * scale), y: y + held.current.y - (y + at.y * scale) });
    } else hand.move(hand.camera());
    held.current = null;
  }, [laid, layout, place, hand]);

  const toggle = (group: string, isClosed: boolean) => {
    const at = cornerOf(laid, group);
    const { x, y, scale } = hand.camera();
    held.current = at && { group, x: x + at.x * scale, y: y + at.y * scale };
    const next = new Set(closed);
    if (isClosed) next.add(group);
    else next.delete(group);
    onClosed(next);
  };
  const wanted = useRef<number | null>(null);
  const goTo = (vertex: number, centre = false) => {
    wanted.current = vertex;
    setCurrent(vertex);
    hand.move(showing(hand.camera(), layout, vertex, hand.size(), centre));
  };
  useLayoutEffect(() => {
    if (wanted.current === null) return;
    const node = hand.view.current?.querySelector<HTMLElement>(`[data-place="${wanted.current}"]`);
    wanted.current = null;
    node?.focus({ preventScroll: true });
  });
  const enter = (vertex: number) => {
    const one = structure.vertices[vertex];
    setCurrent(vertex);
    if (one?.kind === "group") toggle(one.label, false);
    else if (one) onOpen(one.id);
  };
  const press = (event: KeyboardEvent) => {
    const zooms: Record<string, () => void> = {
      "+": () => hand.zoom(1.35),
      "-": () => hand.zoom(1 / 1.35),
      "0": hand.fit,
    };
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const step = stepFrom(structure, layout, here, event.key);
    if (!(event.key in zooms) && step === null) return;
    event.preventDefault();
    zooms[event.key]?.();
    if (step !== null) goTo(step);
  };
  const click = (event: MouseEvent) => {
    if (hand.wasDragged()) return;
    const node = (event.target as HTMLElement).closest<HTMLElement>("[data-place]");
    if (node) enter(Number(node.dataset.place));
    else if (!hand.shown.isNear && !(event.target as HTMLElement).closest("button")) {
      const box = hand.view.current?.getBoundingClientRect();
      const { x, y, scale } = hand.camera();
      const [left, top] = [event.clientX - (box?.left ?? 0), event.clientY - (box?.top ?? 0)];
      const hit = vertexAt(layout, (left - x) / scale, (top - y) / scale);
      if (hit !== null) enter(hit);
    }
  };
  const next = () => {
    const all = found ? [...found].sort((a, b) => a - b) : [];
    const to = all.find((vertex) => vertex > here) ?? all[0];
    if (to === undefined) return;
    setCurrent(to);
    hand.move(showing(hand.camera(), layout, to, hand.size(), true));
  };
  const { part, isNear } = hand.shown;
  const drawn = useMemo(() => {
    const inPart = isNear ? verticesIn(layout, part) : [];
    return inPart.includes(here) ? inPart : [...inPart, here].sort((a, b) => a - b);
  }, [layout, part, isNear, here]);
  return (
    <>
      <Toolbar
        search={search}
        onSearch={setSearch}
        found={found ? found.size : null}
        onNext={next}
        groups={groups}
        closed={closed}
        onClosed={onClosed}
        onZoom={hand.zoom}
        onFit={hand.fit}
      />
      {/* biome-ignore lint/a11y/useSemanticElements: a field of buttons, not of a form */}
      <div
        ref={hand.view}
        className="graph-view"
        // No higher than the graph is.
        style={{ "--graph-height": `${Math.round(layout.height) + 24}px` } as CSSProperties}
        role="group"
        aria-label="Graph of the tasks. The arrow keys lead along its edges, Enter opens a task, plus and minus zoom."
        onKeyDown={press}
        onClick={click}
      >
        <canvas ref={canvas} />
        <div ref={hand.layer} className="graph-layer">
          <Boxes boxes={layout.boxes} isNear={isNear} onClose={(group) => toggle(group, true)} />
          {drawn.map((vertex) => {
            const one = structure.vertices[vertex];
            const look = seen[vertex];
            if (!one || !look) return null;
            return (
              <Node
                key={one.id}
                place={vertex}
                label={one.label}
                group={one.kind === "group"}
                {...look}
                x={layout.x[vertex] ?? 0}
                y={layout.y[vertex] ?? 0}
                isChosen={vertex === place}
                isCurrent={vertex === here}
                isFaint={found !== null && !found.has(vertex)}
                isFar={!isNear}
              />
            );
          })}
        </div>
        <Ink own={ink.own} />
      </div>
      <Legend counts={counts} pressed={pressed} onPress={setPressed} />
    </>
  );
}

/** The corner of a group, closed or open. */
function cornerOf({ structure, layout }: Laid, group: string): { x: number; y: number } | null {
  const box = layout.boxes.find((one) => one.group === group);
  if (box) return box;
  const vertex = structure.places.get(groupVertex(group));
  return vertex === undefined ? null : { x: layout.x[vertex] ?? 0, y: layout.y[vertex] ?? 0 };
}
