/** What a task does: one of the kinds of steps that can be run here. */

import { type ReactNode, useState } from "react";
import { SelectField } from "../../ui/form";
import { isObject, named, type Path } from "../definition";
import { put, remove } from "../document";
import type { Schema } from "../shapes";
import { useForm, useValue, useWrong } from "./context";
import { Field, FieldGrid, Spelled } from "./field";
import { COMMAND } from "./texts";
import { kindInWords } from "./words";

const BEGINS: Readonly<Record<string, unknown>> = {
  wait: { for: "10m" },
  sensor: { job: "" },
  external: {},
  approval: {},
  http: { url: "" },
  container: { image: "" },
  event: { source: "", type: "" },
  awsSdk: { service: "", action: "" },
};

/** `path` is the task's, or that of a job with one step. */
export function StepFields({ path, lead }: { path: Path; lead?: ReactNode }) {
  const { shapes, edit } = useForm();
  const owner = useValue(path);
  const run = isObject(owner) ? owner.run : undefined;
  const isShort = isObject(owner) && owner.command !== undefined && owner.command !== null;
  const kinds = shapes.steps();
  const kind = isShort ? "command" : isObject(run) ? (Object.keys(run).find((name) => kinds.has(name)) ?? "") : "";
  const wrong = useWrong([...path, "run"], false);
  // What was filled in for another kind comes back with it.
  const [before] = useState(() => new Map<string, unknown>());
  const choose = (next: string) =>
    edit((doc) => {
      if (kind) before.set(kind, isShort ? { command: isObject(owner) ? owner.command : "" } : run);
      if (isShort) remove(doc, [...path, "command"]);
      put(doc, [...path, "run"], before.get(next) ?? { [next]: BEGINS[next] ?? "" });
    });
  const schema = kinds.get(kind);
  return (
    <>
      <div className="grid">
        {lead}
        <SelectField
          label="What it does"
          wrong={wrong}
          value={kind}
          data-path={named([...path, "run"])}
          choices={[
            ...(kind ? [] : [{ value: "", label: "– choose –" }]),
            ...[...kinds.keys()].map((one) => ({ value: one, label: kindInWords(one) })),
          ]}
          onChange={(event) => choose(event.target.value)}
        />
      </div>
      {isShort && <Spelled path={[...path, "command"]} spelling={COMMAND} hint={COMMAND_HINT} isNeeded />}
      {!isShort && schema && <KindFields key={kind} path={[...path, "run"]} kind={kind} schema={schema} />}
    </>
  );
}

const COMMAND_HINT = "Split as a shell would, and run without one.";

function KindFields({ path, kind, schema }: { path: Path; kind: string; schema: Schema }) {
  const { shapes } = useForm();
  const fields = Object.entries(shapes.fields(schema));
  const [only] = fields;
  const own = only && fields.length === 1 && Object.keys(shapes.fields(only[1])).length > 0 ? only : null;
  if (own) {
    const inner = Object.entries(shapes.fields(own[1]));
    return (
      <FieldGrid path={[...path, kind]} fields={inner} needed={shapes.required(own[1])} more="More about this step" />
    );
  }
  const main = fields.find(([name]) => name === kind);
  return (
    <>
      {main && <Field path={[...path, kind]} schema={main[1]} isNeeded />}
      <FieldGrid
        path={path}
        fields={fields.filter(([name]) => name !== kind)}
        needed={[]}
        more="More about this step"
      />
    </>
  );
}
