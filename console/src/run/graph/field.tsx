/** The graph on its field: one looks around with the pointer, and goes from task to task with the keys. */

import { type CSSProperties, useEffect, useMemo, useRef } from "react";
import { lookOf } from "../../lib/states";
import { mappedOf, type Task } from "../tasks";
import { Boxes } from "./boxes";
import { verticesIn } from "./camera";
import { Ink, usePalette } from "./ink";
import { Legend } from "./legend";
import { Node } from "./node";
import { countStates, seenOf } from "./seen";
import { Toolbar } from "./toolbar";
import { useCamera } from "./use-camera";
import { useFound } from "./use-found";
import type { Laid } from "./use-layout";
import { useMoves } from "./use-moves";
import { usePainter } from "./use-painter";

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
  const byId = useMemo(() => new Map(tasks.map((task) => [task.id, task])), [tasks]);
  const seen = useMemo(() => seenOf(structure, byId), [structure, byId]);
  const looks = useMemo(() => seen.map(({ state }) => lookOf(state)), [seen]);
  const counts = useMemo(() => countStates(tasks), [tasks]);
  const sought = useFound(structure, byId);
  const { found } = sought;
  const place = useMemo(() => placeOf(structure, mappedOf(chosen) ?? chosen), [structure, chosen]);
  const ink = usePalette();
  const { canvas, draw } = usePainter({ layout, edges: structure.edges, looks, chosen: place, found }, ink.palette);
  const resized = useRef<() => void>(() => undefined);
  const hand = useCamera(layout, { draw, resized: () => resized.current() });
  const onToggle = (group: string, isClosed: boolean) => {
    const next = new Set(closed);
    if (isClosed) next.add(group);
    else next.delete(group);
    onClosed(next);
  };
  const moves = useMoves({ laid, hand, place, onOpen, onToggle });
  resized.current = moves.resized;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is painted has changed
  useEffect(hand.redraw, [looks, found, place, layout, ink.palette]);
  const { part, isNear } = hand.shown;
  const drawn = useMemo(() => {
    const inPart = isNear ? verticesIn(layout, part) : [];
    return inPart.includes(moves.current) ? inPart : [...inPart, moves.current].sort((a, b) => a - b);
  }, [layout, part, isNear, moves.current]);
  return (
    <>
      <Toolbar
        search={sought.search}
        onSearch={sought.setSearch}
        found={found ? found.size : null}
        onNext={() => moves.next(found)}
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
        onKeyDown={moves.press}
        onClick={moves.click}
      >
        <canvas ref={canvas} />
        <div ref={hand.layer} className="graph-layer">
          <Boxes boxes={layout.boxes} isNear={isNear} onClose={(group) => moves.toggle(group, true)} />
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
                isCurrent={vertex === moves.current}
                isFaint={found !== null && !found.has(vertex)}
                isFar={!isNear}
              />
            );
          })}
        </div>
        <Ink own={ink.own} />
      </div>
      <Legend counts={counts} pressed={sought.state} onPress={sought.setState} />
    </>
  );
}

/** The vertex of a task, or of the closed group that it is in. */
function placeOf({ places, vertices }: Laid["structure"], task: string): number | null {
  if (!task) return null;
  const own = places.get(task) ?? vertices.findIndex(({ kind, members }) => kind === "group" && members.includes(task));
  return own < 0 ? null : own;
}
