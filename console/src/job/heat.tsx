/** A year of a job's fires, a square for each UTC day, as the ledger counts them. */

import { type KeyboardEvent, useLayoutEffect, useMemo, useRef } from "react";
import type { Shape } from "../api/client";
import type { Tone } from "../lib/states";

export type LedgerDay = Shape<"LedgerDay">;

const SIZE = 13;
const GAP = 3;
const STEP = SIZE + GAP;
const LEFT = 30;
const TOP = 18;
const DAY_MS = 86_400_000;
const WEEKS = 53;
const WEEKDAYS = ["", "Mon", "", "Wed", "", "Fri", ""];
const month = new Intl.DateTimeFormat(undefined, { month: "short", timeZone: "UTC" });
const inWords = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });

interface Cell {
  day: string;
  week: number;
  weekday: number;
  counts: Readonly<Record<string, number>>;
}

/** The worst of what happened on a day decides its colour. */
export function toneOf(counts: Readonly<Record<string, number>>): Tone | "none" {
  if (counts.missing || counts.extra) return "bad";
  if (counts.skipped && !counts.fired) return "warn";
  if (counts.fired) return "good";
  if (counts.pending) return "wait";
  return counts.expired ? "muted" : "none";
}

/** Such as "12 fired, 2 skipped"; the worst first. */
export function inCounts(counts: Readonly<Record<string, number>>): string {
  const order = ["missing", "extra", "skipped", "fired", "pending", "expired"];
  const said = order.flatMap((status) => (counts[status] ? [`${counts[status]} ${status}`] : []));
  return said.join(", ") || "no fires";
}

export function cellsOf(days: readonly LedgerDay[], until: string): Cell[] {
  const counts = new Map(days.map((day) => [day.day, day.counts]));
  const end = Date.parse(`${until}T00:00:00Z`);
  const first = end - ((WEEKS - 1) * 7 + new Date(end).getUTCDay()) * DAY_MS;
  const cells: Cell[] = [];
  for (let at = first; at <= end; at += DAY_MS) {
    const day = new Date(at).toISOString().slice(0, 10);
    const number = Math.round((at - first) / DAY_MS);
    cells.push({ day, week: Math.floor(number / 7), weekday: number % 7, counts: counts.get(day) ?? {} });
  }
  return cells;
}

interface HeatProps {
  days: readonly LedgerDay[];
  until: string;
  chosen: string | null;
  choose: (day: string) => void;
}

const MOVES: Readonly<Record<string, number>> = { ArrowRight: 7, ArrowLeft: -7, ArrowDown: 1, ArrowUp: -1 };

export function HeatMap({ days, until, chosen, choose }: HeatProps) {
  const cells = useMemo(() => cellsOf(days, until), [days, until]);
  const own = useRef<SVGSVGElement>(null);
  const place = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    // Where not the whole year is in sight, the latest days are.
    if (place.current) place.current.scrollLeft = place.current.scrollWidth;
  }, []);
  const focused = Math.max(
    0,
    cells.findIndex((cell) => cell.day === (chosen ?? until)),
  );
  const pressed = (event: KeyboardEvent<SVGGElement>, at: number) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(cells[at]?.day ?? until);
    }
    const to = at + (MOVES[event.key] ?? 0);
    if (to === at || !cells[to]) return;
    event.preventDefault();
    own.current?.querySelector<SVGGElement>(`[data-at="${to}"]`)?.focus();
  };
  return (
    <section ref={place} className="scroll-x" aria-label={`Fires of each day of the year until ${until}, in UTC`}>
      {/* biome-ignore lint/a11y/noSvgWithoutTitle: each of its squares has one */}
      <svg ref={own} className="heat" width={LEFT + WEEKS * STEP} height={TOP + 7 * STEP}>
        {monthsOf(cells).map(({ week, label }) => (
          <text key={week} x={LEFT + week * STEP} y={11}>
            {label}
          </text>
        ))}
        {WEEKDAYS.map((label, weekday) =>
          label ? (
            <text key={label} x={0} y={TOP + weekday * STEP + 10}>
              {label}
            </text>
          ) : null,
        )}
        {cells.map((cell, at) => (
          // biome-ignore lint/a11y/useSemanticElements: a button cannot stand in a drawing
          <g
            key={cell.day}
            role="button"
            tabIndex={at === focused ? 0 : -1}
            data-at={at}
            data-tone={toneOf(cell.counts)}
            aria-pressed={cell.day === chosen}
            aria-label={`${inWords.format(new Date(cell.day))}: ${inCounts(cell.counts)}`}
            onClick={() => choose(cell.day)}
            onKeyDown={(event) => pressed(event, at)}
          >
            <title>{`${inWords.format(new Date(cell.day))}: ${inCounts(cell.counts)}`}</title>
            <rect x={LEFT + cell.week * STEP} y={TOP + cell.weekday * STEP} width={SIZE} height={SIZE} rx={3} />
            <Mark cell={cell} />
          </g>
        ))}
      </svg>
    </section>
  );
}

/** What is not as it should be is marked by its form too. */
function Mark({ cell }: { cell: Cell }) {
  const tone = toneOf(cell.counts);
  const mark = tone === "bad" ? "!" : tone === "warn" || cell.counts.skipped ? "·" : "";
  if (!mark) return null;
  const x = LEFT + cell.week * STEP + SIZE / 2;
  return (
    <text className="mark" x={x} y={TOP + cell.weekday * STEP + 10} textAnchor="middle">
      {mark}
    </text>
  );
}

function monthsOf(cells: readonly Cell[]): { week: number; label: string }[] {
  const found: { week: number; label: string }[] = [];
  for (const cell of cells) {
    if (!cell.day.endsWith("-01")) continue;
    const week = cell.weekday === 0 ? cell.week : cell.week + 1;
    if (week < WEEKS - 1) found.push({ week, label: month.format(new Date(cell.day)) });
  }
  return found;
}

const LEGEND: readonly [Tone | "none", string][] = [
  ["good", "all fired"],
  ["warn", "skipped, with a reason"],
  ["bad", "missing or extra"],
  ["wait", "pending"],
  ["muted", "kept no longer"],
  ["none", "no fires"],
];

export function HeatLegend() {
  return (
    <ul className="row wrap legend">
      {LEGEND.map(([tone, label]) => (
        <li key={tone} className="row soft">
          <span className={`square ${tone === "none" ? "none" : ""}`} data-tone={tone} aria-hidden="true" />
          {label}
        </li>
      ))}
    </ul>
  );
}
