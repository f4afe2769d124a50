/** The instances of a mapped task: one for each item of its list. */

import { useMemo, useState } from "react";
import { lookOf } from "../lib/states";
import { Lasted, Progress, StatePill } from "../ui/parts";
import { Rows } from "../ui/rows";
import { countsOf, instancesOf, type Task } from "./tasks";
import { reasonInWords } from "./words";

interface InstancesProps {
  task: Task;
  tasks: readonly Task[];
  onOpen: (task: string) => void;
}

export function Instances({ task, tasks, onOpen }: InstancesProps) {
  const [only, setOnly] = useState("");
  const all = useMemo(() => instancesOf(tasks, task.id), [tasks, task.id]);
  const states = useMemo(() => [...new Set(all.map(({ state }) => state))].sort(), [all]);
  const shown = only ? all.filter(({ state }) => state === only) : all;
  const counts = countsOf(task);
  return (
    <div className="stack">
      {counts && (
        <div className="row">
          <div className="grow">
            <Progress value={(counts.over * 100) / Math.max(1, counts.total)} label={`Instances of ${task.id} over`} />
          </div>
          <span className="number">
            {counts.over.toLocaleString()}/{counts.total.toLocaleString()}
          </span>
        </div>
      )}
      <select
        className="input"
        aria-label="State of the instances"
        value={only}
        onChange={(event) => setOnly(event.target.value)}
      >
        <option value="">All instances ({all.length.toLocaleString()})</option>
        {states.map((state) => (
          <option key={state} value={state}>
            {lookOf(state).label} ({all.filter((one) => one.state === state).length.toLocaleString()})
          </option>
        ))}
      </select>
      <div className="framed">
        <Rows items={shown} height={36} label={`Instances of ${task.id}`} keyOf={({ id }) => id} most="50dvh">
          {(one) => (
            <button type="button" className="instance" onClick={() => onOpen(one.id)}>
              <span className="number">{one.id.slice(task.id.length)}</span>
              <StatePill state={one.state} />
              <span className="grow cut soft" title={reasonInWords(one.reason)}>
                {reasonInWords(one.reason)}
              </span>
              <Lasted from={one.startedAt} to={one.endedAt} />
            </button>
          )}
        </Rows>
      </div>
    </div>
  );
}
