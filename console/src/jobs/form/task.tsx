/** A task: what it does, what it waits for, and under which conditions. */

import { useEffect, useState } from "react";
import { CheckField, TextField } from "../../ui/form";
import { isObject, named, type Path } from "../definition";
import { useForm, useValue, useWrong } from "./context";
import { Field, FieldGrid, Spelled } from "./field";
import { StepFields } from "./step";
import { renameTask } from "./tasks";
import { COMMA_WORDS } from "./texts";

const OWN = ["id", "run", "command", "needs", "when", "if"];
const BOXES_MAX = 24;

export function TaskFields({ index, ids }: { index: number; ids: readonly string[] }) {
  const { shapes } = useForm();
  const path: Path = ["tasks", index];
  const task = useValue(path);
  const fields = shapes.fields(shapes.named("Task"));
  const needs = isObject(task) && Array.isArray(task.needs) ? task.needs.map(String) : [];
  const hasRetries = isObject(task) && task.retries !== undefined;
  const others = Object.entries(fields).filter(
    ([name]) => !OWN.includes(name) && name !== (hasRetries ? "retry" : "retries"),
  );
  return (
    <div className="stack">
      <StepFields path={path} lead={<IdOf index={index} ids={ids} />} />
      {ids.length > 1 && <Needs path={path} ids={ids} own={ids[index] ?? ""} needs={needs} />}
      <div className="grid">
        {needs.length > 0 && <Field path={[...path, "when"]} schema={fields.when ?? {}} />}
        <div className={needs.length > 0 ? undefined : "whole"}>
          <Field path={[...path, "if"]} schema={fields.if ?? {}} />
        </div>
      </div>
      <FieldGrid path={path} fields={others} needed={[]} more="Retries, time-out, mapping and more" />
    </div>
  );
}

/** Others name a task by its id: it changes once it is typed to its end. */
function IdOf({ index, ids }: { index: number; ids: readonly string[] }) {
  const { edit } = useForm();
  const path: Path = ["tasks", index, "id"];
  const id = ids[index] ?? "";
  const [text, setText] = useState(id);
  const wrong = useWrong(path);
  useEffect(() => setText(id), [id]);
  const isTaken = text !== id && ids.includes(text);
  const commit = () => {
    if (text !== id && !isTaken) edit((doc) => renameTask(doc, index, id, text));
  };
  return (
    <TextField
      label="Task id"
      className="input mono"
      value={text}
      data-path={named(path)}
      wrong={isTaken ? `There is a task '${text}' already.` : wrong}
      onChange={(event) => setText(event.target.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit();
      }}
    />
  );
}

function Needs(props: { path: Path; ids: readonly string[]; own: string; needs: readonly string[] }) {
  const { change } = useForm();
  const { ids, own, needs } = props;
  const path = [...props.path, "needs"];
  const wrong = useWrong(path);
  if (ids.length > BOXES_MAX) {
    return <Spelled path={path} spelling={COMMA_WORDS} hint="Ids of tasks, with commas between them." />;
  }
  const toggle = (id: string, isNeeded: boolean) => {
    const next = isNeeded ? ids.filter((one) => needs.includes(one) || one === id) : needs.filter((one) => one !== id);
    change(path, next.length ? next : undefined);
  };
  const unknown = needs.filter((one) => !ids.includes(one));
  return (
    <fieldset className="parts" data-path={named(path)}>
      <legend>Needs</legend>
      <div className="row wrap">
        {[...ids.filter((one) => one && one !== own), ...unknown].map((one) => (
          <CheckField
            key={one}
            label={one}
            checked={needs.includes(one)}
            onChange={(checked) => toggle(one, checked)}
          />
        ))}
      </div>
      {wrong && <span className="wrong">{wrong}</span>}
    </fieldset>
  );
}
