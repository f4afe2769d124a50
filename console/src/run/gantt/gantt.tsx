/** When the tasks of a run waited and ran, one line each, under an axis in the user's zone. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";
import { useMedia, useNow } from "../../lib/hooks";
import { hasEnded, lookOf } from "../../lib/states";
import { asTime, inUtc, lasting, zone } from "../../lib/time";
import { Button } from "../../ui/parts";
import type { Run, Task } from "../tasks";
import { barsOf, type Line, linesOf, type Span, spanSoFar } from "./bars";
import { ticksOf } from "./ticks";

const LINE_PX = 30;
const TICKS_WIDE = 8;
const TICKS_NARROW = 2;
const ZOOM_MOST = 64;

interface GanttProps {
  run: Run;
  tasks: readonly Task[];
  chosen: string;
  onOpen: (task: string) => void;
}

export default function Gantt({ run, tasks, chosen, onOpen }: GanttProps) {
  const isOpen = !hasEnded(run.state);
  const now = useNow(isOpen ? 1_000 : null).getTime();
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [zoom, setZoom] = useState(1);
  const isNarrow = useMedia("(max-width: 820px)");
  const began = run.startedAt;
  const lines = useMemo(() => linesOf(began, tasks, open), [began, tasks, open]);
  const done = useMemo(() => spanSoFar(run, tasks), [run, tasks]);
  const span = isOpen ? { from: done.from, to: Math.max(done.to, now) } : done;
  const scrolled = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scrolled.current,
    estimateSize: () => LINE_PX,
    overscan: 12,
  });
  const toggle = (id: string) => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  const ticks = ticksOf(span.from, span.to, (isNarrow ? TICKS_NARROW : TICKS_WIDE) * zoom);
  return (
    <div className="gantt-whole">
      <div className="row between wrap">
        <span className="faint">Times in {zone}. Hatched: ready, and waiting for a place to run.</span>
        <div className="row">
          <Button kind="quiet" aria-label="Show a longer time" disabled={zoom <= 1} onClick={() => setZoom(zoom / 2)}>
            −
          </Button>
          <Button
            kind="quiet"
            aria-label="Show a shorter time"
            disabled={zoom >= ZOOM_MOST}
            onClick={() => setZoom(zoom * 2)}
          >
            +
          </Button>
        </div>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so that keys must reach it */}
      <section ref={scrolled} className="gantt" tabIndex={0} aria-label="Timeline of the tasks">
        <div className="gantt-all" style={{ width: `calc(var(--gantt-name) + (100% - var(--gantt-name)) * ${zoom})` }}>
          <div className="gantt-head">
            <span className="gantt-name" />
            <span className="gantt-track">
              {ticks.map(({ at, label }) => (
                <span
                  key={at}
                  className="tick"
                  // The last one stands before its line: behind it there may be no room.
                  data-before={span.to - at < (span.to - span.from) * (isNarrow ? 0.3 : 0.09)}
                  title={inUtc(new Date(at))}
                  style={{ left: placed(at, span) }}
                >
                  {label}
                </span>
              ))}
            </span>
          </div>
          <ul style={{ height: virtual.getTotalSize(), position: "relative" }}>
            <li className="gantt-grid" aria-hidden="true">
              {ticks.map(({ at }) => (
                <span key={at} style={{ left: placed(at, span) }} />
              ))}
              {isOpen && <span className="now" style={{ left: placed(now, span) }} />}
            </li>
            {virtual.getVirtualItems().map((row) => {
              const line = lines[row.index];
              return line ? (
                <li
                  key={line.id}
                  className="gantt-line"
                  data-chosen={line.id === chosen}
                  style={{ height: row.size, transform: `translateY(${row.start}px)` }}
                >
                  <Row line={line} span={span} now={now} isOpen={open.has(line.id)} onOpen={onOpen} onToggle={toggle} />
                </li>
              ) : null;
            })}
          </ul>
        </div>
      </section>
    </div>
  );
}

interface RowProps {
  line: Line;
  span: Span;
  now: number;
  isOpen: boolean;
  onOpen: (task: string) => void;
  onToggle: (task: string) => void;
}

function Row({ line, span, now, isOpen, onOpen, onToggle }: RowProps) {
  const { glyph, tone, label: word } = lookOf(line.state);
  const bars = barsOf(line, now);
  const first = bars[0];
  const waitsTo = first?.from ?? now;
  const waits = line.readyAt !== null && waitsTo > line.readyAt;
  return (
    <>
      <span className="gantt-name" data-depth={line.depth}>
        {line.opens && (
          <button
            type="button"
            className="opens"
            aria-expanded={isOpen}
            aria-label={`Instances of ${line.label}`}
            onClick={() => onToggle(line.id)}
          >
            {isOpen ? "▾" : "▸"}
          </button>
        )}
        <button type="button" className="cut as-link" title={line.id} onClick={() => onOpen(line.id)}>
          {line.label}
        </button>
        {line.attempts > 1 && (
          <span className="faint number" title={`${line.attempts} attempts`}>
            {line.attempts}×
          </span>
        )}
        <span className="state-glyph" data-tone={tone} title={word}>
          <span aria-hidden="true">{glyph}</span>
          <span className="visually-hidden">{word}</span>
        </span>
      </span>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the name beside it is the button; this only makes it larger */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: as above */}
      <span className="gantt-track" onClick={() => onOpen(line.id)}>
        {waits && (
          <span
            className="wait"
            title={`Waited ${lasting(waitsTo - (line.readyAt ?? 0))}`}
            style={{ left: placed(line.readyAt ?? 0, span), width: wide(line.readyAt ?? 0, waitsTo, span) }}
          />
        )}
        {bars.map((bar) => (
          <span
            key={bar.attempt}
            className="run-bar"
            data-tone={lookOf(bar.state).tone}
            title={`${line.id}, attempt ${bar.attempt}: ${asTime(new Date(bar.from))}, ${lasting(bar.to - bar.from)}`}
            style={{ left: placed(bar.from, span), width: wide(bar.from, bar.to, span) }}
          />
        ))}
        {line.isCarried && <span className="note">taken over</span>}
      </span>
    </>
  );
}

function placed(at: number, { from, to }: Span): string {
  return `${(((at - from) * 100) / (to - from)).toFixed(4)}%`;
}

function wide(from: number, end: number, span: Span): string {
  return `${(((end - from) * 100) / (span.to - span.from)).toFixed(4)}%`;
}
