/** Beside a job that is being written: what is wrong with it, when it would run, and what would change. */

import { inUtc, zone } from "../lib/time";
import { Moment, Notice, Sheet, Wrong } from "../ui/parts";
import { isObject } from "./definition";
import { Changes } from "./diff";
import { lineOf } from "./document";
import type { Planned, Problem } from "./plan";

const FIRES_SHOWN = 6;
const MINUTES: Intl.DateTimeFormatOptions = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
const LOCAL: Intl.DateTimeFormatOptions = { ...MINUTES, weekday: "short", year: "numeric", timeZone: "UTC" };
const toMinutes = clocks({});
const toSeconds = clocks({ second: "2-digit" });

function clocks(more: Intl.DateTimeFormatOptions) {
  return {
    local: new Intl.DateTimeFormat(undefined, { ...LOCAL, ...more }),
    own: new Intl.DateTimeFormat(undefined, { ...MINUTES, ...more }),
    length: more.second ? 19 : 16,
  };
}

interface PanelProps {
  planned: Planned;
  text: string;
  timezone: string;
  /** Show a field that something is wrong with. */
  show: (problem: Problem) => void;
}

export function PlanPanel({ planned, text, timezone, show }: PanelProps) {
  const { plan, difference, problems, isCurrent, failure } = planned;
  return (
    <aside className="plan stack" aria-label="Plan">
      <Sheet
        title="Plan"
        actions={
          <span className="faint" role="status">
            {problems.length ? counted(problems.length) : isCurrent ? (plan ? "It is right" : "") : "Looking at it…"}
          </span>
        }
      >
        <div className="stack" data-old={!isCurrent}>
          {problems.length > 0 && <Problems problems={problems} text={text} show={show} />}
          {Boolean(failure) && <Wrong error={failure} />}
          {plan && <Fires plan={plan} timezone={timezone} />}
          {plan && difference && difference.action !== "create" && (
            <section className="stack">
              <h3>What changes</h3>
              {difference.action === "none" ? (
                <p className="soft">Nothing: it says the same as version {difference.version}.</p>
              ) : (
                <Changes summary={difference.summary} label={`What differs from version ${difference.version}`} />
              )}
            </section>
          )}
        </div>
      </Sheet>
    </aside>
  );
}

function counted(problems: number): string {
  return `${problems} ${problems === 1 ? "thing" : "things"} to correct`;
}

function Problems({ problems, text, show }: { problems: readonly Problem[]; text: string; show: PanelProps["show"] }) {
  return (
    <ul className="problems" aria-label="To correct">
      {problems.map((problem) => (
        <li key={`${problem.path} ${problem.message}`}>
          <button type="button" onClick={() => show(problem)}>
            <span className="row between">
              <strong className="mono">{problem.path || "YAML"}</strong>
              <span className="faint">line {lineOf(text, problem.from)}</span>
            </span>
            <span>{problem.message}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function Fires({ plan, timezone }: { plan: NonNullable<Planned["plan"]>; timezone: string }) {
  const { fires, notes } = plan;
  if (fires.length === 0) {
    return (
      <p className="soft">It has no fire times: it runs when it is triggered, or when what it waits for happens.</p>
    );
  }
  const isUtc = !timezone || timezone === "UTC";
  const shown = fires.slice(0, FIRES_SHOWN);
  const { local, own, length } = shown.every(({ fireAt }) => new Date(fireAt).getSeconds() === 0)
    ? toMinutes
    : toSeconds;
  return (
    <>
      <section className="stack">
        <h3>Next fires</h3>
        <table className="next-fires">
          <thead>
            <tr>
              <th scope="col">{timezone || "UTC"}</th>
              <th scope="col">{isUtc ? zone : "UTC"}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((fire) => (
              <tr key={fire.fireAt} title={fire.note || undefined}>
                <td className="number">
                  {local.format(new Date(`${fire.local.slice(0, 19)}Z`))}
                  {fire.note && <span className="note"> *</span>}
                </td>
                <td className="number soft">
                  {isUtc ? own.format(new Date(fire.fireAt)) : inUtc(fire.fireAt).slice(5, length)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {!isUtc && timezone !== zone && (
          <p className="faint">
            The first one for you, in {zone}: <Moment at={fires[0]?.fireAt} />
          </p>
        )}
      </section>
      {notes.length > 0 && (
        <Notice tone="warn">
          <strong>When the clocks change</strong>
          <ul className="stack">
            {notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </Notice>
      )}
      <Load plan={plan} timezone={timezone} />
    </>
  );
}

function Load({ plan, timezone }: { plan: NonNullable<Planned["plan"]>; timezone: string }) {
  const hours = plan.loadPerHour;
  const most = Math.max(1, ...hours);
  const busiest = hours.indexOf(most);
  const cost = costOf(plan);
  return (
    <section className="stack">
      <h3>Load</h3>
      <p>
        {perDay(plan.runsPerDay)}
        {hours.some(Boolean) && `, at most ${most} in an hour`}.{cost && ` About ${cost} a month.`}
      </p>
      {hours.some(Boolean) && (
        <div
          className="load"
          role="img"
          aria-label={`Runs per hour of the next day, in ${timezone || "UTC"}: most at ${busiest} o'clock, with ${most}.`}
        >
          {hours.map((count, hour) => (
            <span
              // biome-ignore lint/suspicious/noArrayIndexKey: an hour is known by its place
              key={hour}
              title={`${String(hour).padStart(2, "0")}:00 – ${count} ${count === 1 ? "run" : "runs"}`}
              style={{ height: `${count ? Math.max(8, (100 * count) / most) : 2}%` }}
              data-none={count === 0}
            />
          ))}
          <span className="from">0</span>
          <span className="to">24 h</span>
        </div>
      )}
    </section>
  );
}

function perDay(runs: number): string {
  if (runs >= 10) return `About ${Math.round(runs).toLocaleString()} runs a day`;
  if (runs >= 0.95) return runs < 1.05 ? "About 1 run a day" : `About ${Number(runs.toFixed(1))} runs a day`;
  const perMonth = runs * 30.4;
  if (perMonth >= 1) return `About ${Number(perMonth.toFixed(1))} runs a month`;
  const perYear = Math.round(runs * 366);
  return `${perYear} ${perYear === 1 ? "run" : "runs"} in the coming year`;
}

/** Only some places say what a month of it costs. */
function costOf(plan: Record<string, unknown>): string | null {
  const given = plan.costPerMonth;
  const dollars = isObject(given) ? given.dollars : given;
  return typeof dollars === "number" ? `$${dollars.toFixed(dollars < 1 ? 4 : 2)}` : null;
}
