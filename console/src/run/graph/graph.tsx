/** A run as a graph of its tasks, coloured by their states. */

import { useMemo, useRef, useState } from "react";
import { Loading, Wrong } from "../../ui/parts";
import { type Task, wholeTasks } from "../tasks";
import { Field } from "./field";
import { groupsOf, type Structure, structureOf } from "./structure";
import { type Arrange, inWorker, useLayout } from "./use-layout";

/** Of more tasks than this, groups are closed at first. */
const OPEN_MOST = 400;

interface GraphProps {
  tasks: readonly Task[];
  /** The task that is open beside the graph; an instance of a mapped one stands for that. */
  chosen: string;
  onOpen: (task: string) => void;
  arrange?: Arrange;
}

export default function Graph({ tasks, chosen, onOpen, arrange = inWorker }: GraphProps) {
  const whole = useSameShape(tasks);
  const groups = useMemo(() => [...groupsOf(whole).keys()], [whole]);
  const [closed, setClosed] = useState<ReadonlySet<string>>(() =>
    whole.length > OPEN_MOST ? new Set(groups) : new Set(),
  );
  const structure = useMemo<Structure>(() => structureOf(whole, closed), [whole, closed]);
  const { laid, error } = useLayout(structure, arrange);
  if (laid === null) {
    return <div className="graph-view still">{error ? <Wrong error={error} /> : <Loading lines={3} />}</div>;
  }
  return (
    <div className="graph">
      {error ? <Wrong error={error} /> : null}
      <Field
        laid={laid}
        tasks={tasks}
        chosen={chosen}
        onOpen={onOpen}
        groups={groups}
        closed={closed}
        onClosed={setClosed}
      />
    </div>
  );
}

/** The same tasks as before for as long as only their states change, so that nothing is arranged anew. */
function useSameShape(tasks: readonly Task[]): readonly Task[] {
  const kept = useRef<readonly Task[]>([]);
  const whole = useMemo(() => wholeTasks(tasks), [tasks]);
  if (!isSameShape(kept.current, whole)) kept.current = whole;
  return kept.current;
}

function isSameShape(one: readonly Task[], two: readonly Task[]): boolean {
  return one.length === two.length && one.every((task, place) => isAlike(task, two[place]));
}

function isAlike(one: Task, two: Task | undefined): boolean {
  if (two === undefined || one.id !== two.id || (one.group ?? "") !== (two.group ?? "")) return false;
  return (
    one.needs === two.needs ||
    (one.needs.length === two.needs.length && one.needs.every((need, place) => need === two.needs[place]))
  );
}
