/** What a job runs: one step, or tasks that need each other. */

import { useEffect, useState } from "react";
import { Icon } from "../../ui/icons";
import { Menu } from "../../ui/menu";
import { Button, Sheet } from "../../ui/parts";
import { isObject } from "../definition";
import { put } from "../document";
import { useForm } from "./context";
import { StepFields } from "./step";
import { TaskFields } from "./task";
import { addTask, copyTask, freeId, moveTask, removeTask, spread } from "./tasks";
import { kindInWords } from "./words";

const SHOWN = 100;

export function TasksSection() {
  const { value, edit, opened } = useForm();
  const [open, setOpen] = useState<number | null>(0);
  useEffect(() => {
    const place = /^tasks\[(\d+)\]/.exec(opened?.path ?? "")?.[1];
    if (place) setOpen(Number(place));
  }, [opened]);
  const tasks = Array.isArray(value.tasks) ? (value.tasks as unknown[]) : null;
  const ids = (tasks ?? []).map((task) => (isObject(task) ? String(task.id ?? "") : ""));
  const isSingle = !tasks && (value.run !== undefined || value.command !== undefined);
  const add = () => {
    edit((doc) => {
      if (isSingle) spread(doc);
      const known = isSingle ? ["main"] : ids;
      const last = known.at(-1);
      addTask(doc, { id: freeId(known), ...(last ? { needs: [last] } : {}), run: { command: "" } });
    });
    setOpen(isSingle ? 1 : ids.length);
  };
  return (
    <Sheet
      title="What it runs"
      actions={
        <Button small icon="plus" onClick={add}>
          Add a task
        </Button>
      }
    >
      <div className="stack">
        {isSingle && <StepFields path={[]} />}
        {tasks && <TaskCards tasks={tasks} ids={ids} open={open} setOpen={setOpen} />}
        {!tasks && !isSingle && (
          <p className="soft">
            {value.template
              ? "The template says what it runs. A task that you add here takes the place of all of its tasks."
              : "Nothing yet: add a task."}
          </p>
        )}
      </div>
    </Sheet>
  );
}

interface CardsProps {
  tasks: readonly unknown[];
  ids: readonly string[];
  open: number | null;
  setOpen: (index: number | null) => void;
}

function TaskCards({ tasks, ids, open, setOpen }: CardsProps) {
  const [shown, setShown] = useState(SHOWN);
  const count = Math.max(shown, (open ?? 0) + 1);
  return (
    <>
      <ol className="tasks">
        {tasks.slice(0, count).map((task, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a task is known by its place, since ids are being typed
          <TaskCard key={index} task={task} index={index} ids={ids} isOpen={open === index} setOpen={setOpen} />
        ))}
      </ol>
      {tasks.length > count && (
        <div className="row wrap">
          <span className="soft">
            {count} of {tasks.length} tasks are shown.
          </span>
          <Button small onClick={() => setShown(count + SHOWN)}>
            Show {Math.min(SHOWN, tasks.length - count)} more
          </Button>
        </div>
      )}
    </>
  );
}

interface CardProps extends Pick<CardsProps, "ids" | "setOpen"> {
  task: unknown;
  index: number;
  isOpen: boolean;
}

function TaskCard({ task, index, ids, isOpen, setOpen }: CardProps) {
  const { edit, problems } = useForm();
  const id = ids[index] ?? "";
  const mine = `tasks[${index}]`;
  const wrong = problems.filter(({ path }) => path === mine || path.startsWith(`${mine}.`)).length;
  const needs = isObject(task) && Array.isArray(task.needs) ? task.needs.map(String) : [];
  const move = (by: number) => {
    edit((doc) => moveTask(doc, index, by));
    if (isOpen) setOpen(index + by);
  };
  const items = [
    ...(index > 0 ? [{ label: "Move up", run: () => move(-1) }] : []),
    ...(index < ids.length - 1 ? [{ label: "Move down", run: () => move(1) }] : []),
    {
      label: "Duplicate",
      run: () => {
        edit((doc) => copyTask(doc, index, freeId(ids, id)));
        setOpen(index + 1);
      },
    },
    {
      label: "Remove",
      danger: true,
      run: () => {
        edit((doc) => (ids.length > 1 ? removeTask(doc, index, id) : put(doc, ["tasks"], [])));
        setOpen(null);
      },
    },
  ];
  return (
    <li className="task" data-open={isOpen} data-path={mine}>
      <div className="row">
        <button type="button" className="head" aria-expanded={isOpen} onClick={() => setOpen(isOpen ? null : index)}>
          <Icon name={isOpen ? "down" : "next"} />
          <strong className="cut">{id || `Task ${index + 1}`}</strong>
          <span className="faint cut">
            {kindOf(task)}
            {needs.length > 0 && ` · needs ${needs.join(", ")}`}
          </span>
          {wrong > 0 && <span className="wrong">{wrong} to correct</span>}
        </button>
        <Menu label={`More to do with the task ${id}`} items={items} />
      </div>
      {isOpen && (
        <div className="inside">
          <TaskFields index={index} ids={ids} />
        </div>
      )}
    </li>
  );
}

function kindOf(task: unknown): string {
  if (!isObject(task)) return "";
  if (isObject(task.run)) return kindInWords(Object.keys(task.run)[0] ?? "");
  return task.command === undefined ? "" : kindInWords("command");
}
