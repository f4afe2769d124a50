/** The last day, hour by hour: how many runs succeeded, failed and were skipped. */

import { useMemo } from "react";
import type { Shape } from "../api/client";
import { asHour } from "../lib/time";

export type Hour = Shape<"HourOfRuns">;

const HEIGHT = 96;
const PARTS = [
  ["succeeded", "good"],
  ["failed", "bad"],
  ["skipped", "muted"],
] as const;

export function Hours({ hours }: { hours: readonly Hour[] }) {
  const most = useMemo(() => Math.max(1, ...hours.map(totalOf)), [hours]);
  return (
    <div className="hours">
      <ol className="hours-bars">
        {hours.map((hour) => (
          <li key={hour.hour} title={inWords(hour)}>
            <span className="visually-hidden">{inWords(hour)}</span>
            {PARTS.map(([part, tone]) => (
              <span
                key={part}
                className="square"
                data-tone={tone}
                style={{ height: heightOf(hour[part], most), width: "100%" }}
              />
            ))}
          </li>
        ))}
      </ol>
      <div className="row between faint" aria-hidden="true">
        <span>{hours[0] && asHour(hours[0].hour)}</span>
        <span>{`at most ${most.toLocaleString()} an hour`}</span>
        <span>now</span>
      </div>
    </div>
  );
}

function totalOf(hour: Hour): number {
  return hour.succeeded + hour.failed + hour.skipped;
}

/** Something that happened is always to be seen, however much else did. */
function heightOf(count: number, most: number): number {
  return count === 0 ? 0 : Math.max(3, (count / most) * HEIGHT);
}

function inWords(hour: Hour): string {
  return `From ${asHour(hour.hour)}: ${hour.succeeded} succeeded, ${hour.failed} failed, ${hour.skipped} skipped`;
}
