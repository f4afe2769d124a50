/** A few runs across jobs, in little room. */

import { Link } from "wouter";
import type { Shape } from "../api/client";
import { jobPath, runPath } from "../run/link";
import { Lasted, Moment } from "../ui/parts";

export function BriefRuns({ runs }: { runs: readonly Shape<"RunRow">[] }) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Job</th>
          <th scope="col">Was due</th>
          <th scope="col" className="right">
            Took
          </th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={`${run.jobId}/${run.runId}`}>
            <td>
              <Link href={jobPath(run.jobId)}>{run.jobId}</Link>
              {run.reason && run.state === "failed" && (
                <div className="soft brief" title={run.reason}>
                  {run.reason}
                </div>
              )}
            </td>
            <td>
              <Link href={runPath(run.jobId, run.runId)}>
                <Moment at={run.fireAt} relative />
              </Link>
            </td>
            <td className="right">
              <Lasted from={run.startedAt} to={run.endedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
