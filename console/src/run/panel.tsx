/** All about one task of a run. */

import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { hasEnded } from "../lib/states";
import { Lasted, Moment, Progress, StatePill, Tag } from "../ui/parts";
import { Artifacts } from "./artifacts";
import { Definition, stepOf, useDefinition } from "./definition";
import { Instances } from "./instances";
import { Json } from "./json";
import { runPath } from "./link";
import { Log } from "./log/log";
import { TaskActions } from "./task-actions";
import { countsOf, instancesOf, mappedOf, progressOf, type Run, shownState, type Task } from "./tasks";
import { Why } from "./why";
import { reasonInWords } from "./words";

type Part = "log" | "instances" | "output" | "files" | "definition";

interface PanelProps {
  run: Run;
  task: Task;
  tasks: readonly Task[] | undefined;
  onOpen: (task: string) => void;
  /** Where the task is the whole run, whose state is said above already. */
  isWhole?: boolean;
}

export function Panel({ run, task, tasks, onOpen, isWhole = false }: PanelProps) {
  const definition = useDefinition(run.jobId, run.version);
  const step = stepOf(definition.data, task.id);
  const isMapped = countsOf(task) !== null;
  const hasBegun = task.attempt > 0 || task.startedAt !== null;
  const [part, setPart] = useState<Part | null>(null);
  const parts = isMapped ? PARTS_MAPPED : PARTS;
  const first: Part = isMapped ? "instances" : hasBegun ? "log" : "definition";
  const shown = part && parts.some(([name]) => name === part) ? part : first;
  return (
    <div className="panel">
      {!isWhole && <Head run={run} task={task} tasks={tasks} onOpen={onOpen} />}
      <TaskActions run={run} task={task} tasks={tasks} step={step} />
      <Why
        job={run.jobId}
        run={run.runId}
        task={task.id}
        state={task.state}
        reason={task.reason}
        error={isWhole ? run.error : task.error}
      />
      <div className="tabs" role="tablist" aria-label={`About ${task.id}`}>
        {parts.map(([name, label]) => (
          <button key={name} type="button" role="tab" aria-selected={shown === name} onClick={() => setPart(name)}>
            {label}
          </button>
        ))}
      </div>
      <div role="tabpanel" aria-label={parts.find(([name]) => name === shown)?.[1]}>
        {shown === "instances" && <Instances task={task} tasks={tasks ?? []} onOpen={onOpen} />}
        {shown === "log" &&
          (hasBegun ? (
            <Log job={run.jobId} run={run.runId} task={task.id} attempts={task.attempt} />
          ) : (
            <p className="soft">{hasEnded(task.state) ? "It was never begun." : "It has not begun."}</p>
          ))}
        {shown === "output" && <Output task={task} />}
        {shown === "files" && (
          <Artifacts job={run.jobId} run={run.runId} task={task.id} isOpen={!hasEnded(task.state)} />
        )}
        {shown === "definition" && <Definition job={run.jobId} version={run.version} task={task.id} />}
      </div>
    </div>
  );
}

const PARTS: readonly (readonly [Part, string])[] = [
  ["log", "Log"],
  ["output", "Output"],
  ["files", "Files"],
  ["definition", "Definition"],
];
const PARTS_MAPPED: typeof PARTS = [
  ["instances", "Instances"],
  ["output", "Output"],
  ["definition", "Definition"],
];

function Head({ run, task, tasks, onOpen }: Omit<PanelProps, "isWhole">) {
  const mapped = mappedOf(task.id);
  const progress = progressOf(task);
  const isMapped = countsOf(task) !== null;
  const [from, to] = isMapped ? span(instancesOf(tasks ?? [], task.id)) : [task.startedAt, task.endedAt];
  return (
    <>
      <div className="row wrap">
        <StatePill state={shownState(task)} title={reasonInWords(task.reason)} />
        {task.group && <Tag>{task.group}</Tag>}
        {mapped && (
          <button type="button" className="as-link" onClick={() => onOpen(mapped)}>
            All of {mapped}
          </button>
        )}
        {task.carriedFrom && (
          <Link href={runPath(run.jobId, task.carriedFrom, task.id)}>Taken over from an earlier run</Link>
        )}
      </div>
      {progress !== null && !isMapped && !hasEnded(task.state) && (
        <div className="row">
          <div className="grow">
            <Progress value={progress} label={`Progress of ${task.id}`} />
          </div>
          <span className="number">{Math.round(progress)} %</span>
        </div>
      )}
      <dl className="facts">
        <Fact name="Started">
          <Moment at={from} />
        </Fact>
        {from && (
          <Fact name={to ? "Took" : "Takes so far"}>
            <Lasted from={from} to={to} />
          </Fact>
        )}
        {task.attempt > 1 && <Fact name="Attempts">{task.attempt}</Fact>}
        {task.needs.length > 0 && (
          <Fact name="Needs">
            <span className="row wrap">
              {task.needs.slice(0, NEEDS_SHOWN).map((need) => (
                <button key={need} type="button" className="as-link" onClick={() => onOpen(need)}>
                  {need}
                </button>
              ))}
              {task.needs.length > NEEDS_SHOWN && <span>and {task.needs.length - NEEDS_SHOWN} more</span>}
            </span>
          </Fact>
        )}
        {task.started?.jobId && task.started.runId && (
          <Fact name="Its run">
            <Link href={runPath(task.started.jobId, task.started.runId)}>of {task.started.jobId}</Link>
          </Fact>
        )}
      </dl>
    </>
  );
}

const NEEDS_SHOWN = 12;

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Output({ task }: { task: Task }) {
  if (task.output !== null && task.output !== undefined) return <Json value={task.output} what="the output" />;
  if (!hasEnded(task.state)) return <p className="soft">It has given no output so far.</p>;
  return <p className="soft">It gave no output, or one that is too large to be shown here.</p>;
}

/** From the first that began to the last that ended, once all have. */
function span(instances: readonly Task[]): [string | null, string | null] {
  const from = instances.flatMap(({ startedAt }) => startedAt ?? []).sort();
  const to = instances.flatMap(({ endedAt }) => endedAt ?? []).sort();
  return [from[0] ?? null, instances.every(({ state }) => hasEnded(state)) ? (to.at(-1) ?? null) : null];
}
