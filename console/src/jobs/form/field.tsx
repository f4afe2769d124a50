/** One field of a definition, shown as what its schema says it is. */

import { useId, useState } from "react";
import { CheckField, SelectField, TextArea, TextField } from "../../ui/form";
import { isObject, named, type Path } from "../definition";
import type { Schema, Shapes } from "../shapes";
import { useForm, useValue, useWrong } from "./context";
import { Pairs } from "./pairs";
import { COMMA_WORDS, COMMAND, COMMAS, NUMBER_OR_TEXT, type Spelling, TEXT, useSpelled, YAML } from "./texts";
import { valueInWords, type Word, wordFor } from "./words";

type Widget =
  | "choice"
  | "flag"
  | "text"
  | "number"
  | "long"
  | "commas"
  | "words"
  | "command"
  | "pairs"
  | "object"
  | "any";

const FEW = 4;
const FEW_NESTED = 8;
const LONG = new Set(["message", "description"]);

export function widgetOf(shapes: Shapes, schema: Schema, name: string): Widget {
  const options = shapes.options(schema);
  const values = shapes.values(schema);
  if (values) return values.every((value) => typeof value === "boolean") ? "flag" : "choice";
  if (options.some((option) => option.format === "command-line")) return "command";
  const types = new Set(options.map((option) => String(option.type)));
  if (options.length && [...types].every((type) => type === "string")) return LONG.has(name) ? "long" : "text";
  if ([...types].every((type) => ["string", "number", "integer"].includes(type)) && options.length) return "number";
  if (options.length && options.every((option) => option.type === "array")) {
    const items = options.flatMap((option) => (option.items ? shapes.options(option.items) : [{}]));
    if (items.every((item) => item.type === "string" && (item.maxLength ?? 128) <= 256)) return "words";
    if (
      items.every((item) => ["string", "integer", "number"].includes(String(item.type)) && (item.maxLength ?? 0) <= 256)
    )
      return "commas";
    return "any";
  }
  if (options.length && options.every((option) => option.type === "object")) {
    if (options.some((option) => option.properties)) return "object";
    if (options.every((option) => isObject(option.additionalProperties))) return "pairs";
  }
  return "any";
}

interface FieldProps {
  path: Path;
  schema: Schema;
  /** A field that its step or task cannot be without stays there when it is empty. */
  isNeeded?: boolean;
}

export function Field({ path, schema, isNeeded = false }: FieldProps) {
  const { shapes } = useForm();
  const name = String(path.at(-1));
  const widget = widgetOf(shapes, schema, name);
  if (widget === "choice") return <ChoiceOf path={path} values={shapes.values(schema) ?? []} isNeeded={isNeeded} />;
  if (widget === "flag") return <FlagOf path={path} />;
  if (widget === "object") return <FieldsOf path={path} schema={schema} />;
  if (widget === "pairs") return <Pairs path={path} spelling={TEXT} />;
  const hint = hintOf(path, shapes.description(schema), widget);
  if (widget === "any") return <Spelled path={path} spelling={YAML} hint={hint} lines isNeeded={isNeeded} />;
  if (widget === "long") return <Spelled path={path} spelling={TEXT} hint={hint} lines isNeeded={isNeeded} />;
  const spelling = { text: TEXT, number: NUMBER_OR_TEXT, commas: COMMAS, words: COMMA_WORDS, command: COMMAND }[widget];
  return <Spelled path={path} spelling={spelling} hint={hint} isNeeded={isNeeded} />;
}

function hintOf(path: Path, description: string, widget: Widget): string | undefined {
  const { hint, usual } = wordFor(path);
  if (hint) return hint;
  if (widget === "commas" || widget === "words") return "With commas between them.";
  if (usual) return undefined;
  return /^(Where|From|RFC|Text|Any|Anything)/.test(description) || description.length > 90 ? undefined : description;
}

interface SpelledProps {
  path: Path;
  spelling: Spelling;
  hint?: string;
  lines?: boolean;
  isNeeded?: boolean;
  list?: string;
  label?: string;
}

export function Spelled({ path, spelling, hint, lines = false, isNeeded = false, list, label }: SpelledProps) {
  const { change } = useForm();
  const value = useValue(path);
  const own: Spelling = isNeeded
    ? { ...spelling, read: (text, before) => (text === "" ? { value: "" } : spelling.read(text, before)) }
    : spelling;
  const { text, wrong, type } = useSpelled(value, own, (next) => change(path, next));
  const said = useWrong(path);
  const word = wordFor(path);
  const shared = {
    label: label ?? word.label,
    hint,
    wrong: wrong ?? said,
    value: text,
    placeholder: word.like ? `such as ${word.like.split("\n")[0]}` : word.usual,
    "data-path": named(path),
  };
  if (!lines)
    return (
      <TextField
        {...shared}
        list={list}
        onChange={(event) => type(event.target.value)}
        required={isNeeded || undefined}
      />
    );
  return (
    <TextArea
      {...shared}
      rows={Math.min(12, Math.max(2, text.split("\n").length))}
      onChange={(event) => type(event.target.value)}
    />
  );
}

interface ChoiceProps {
  path: Path;
  values: readonly unknown[];
  isNeeded?: boolean;
  word?: Word;
}

export function ChoiceOf({ path, values, isNeeded, word }: ChoiceProps) {
  const { change } = useForm();
  const value = useValue(path);
  const wrong = useWrong(path);
  const { label, hint, usual } = word ?? wordFor(path);
  const known = values.map((one) => ({ value: String(one), label: valueInWords(path, one) }));
  const own = value === undefined || value === null ? "" : String(value);
  const choices = [
    ...(isNeeded && own ? [] : [{ value: "", label: usual ? `${valueInWords(path, usual)} (as usual)` : "–" }]),
    ...known.filter((one) => one.value !== usual || own === usual),
    ...(own && !known.some((one) => one.value === own) ? [{ value: own, label: own }] : []),
  ];
  return (
    <SelectField
      label={label}
      hint={hint}
      wrong={wrong}
      choices={choices}
      value={own}
      data-path={named(path)}
      onChange={(event) => {
        const chosen = event.target.value;
        change(path, chosen === "" ? undefined : (values.find((one) => String(one) === chosen) ?? chosen));
      }}
    />
  );
}

function FlagOf({ path }: { path: Path }) {
  const { change } = useForm();
  const value = useValue(path);
  const wrong = useWrong(path);
  return (
    <div className="field" data-path={named(path)}>
      <CheckField
        label={wordFor(path).label}
        checked={value === true}
        onChange={(checked) => change(path, checked || undefined)}
      />
      {wrong && <span className="wrong">{wrong}</span>}
    </div>
  );
}

/** The fields of an object, those that must be there first. */
export function FieldsOf({ path, schema, legend }: { path: Path; schema: Schema; legend?: string }) {
  const { shapes } = useForm();
  const id = useId();
  const wrong = useWrong(path, false);
  const fields = Object.entries(shapes.fields(schema));
  const needed = shapes.required(schema);
  return (
    <fieldset className="parts nested" aria-describedby={wrong ? id : undefined} data-path={named(path)}>
      <legend>{legend ?? wordFor(path).label}</legend>
      {wrong && (
        <span className="wrong" id={id}>
          {wrong}
        </span>
      )}
      <FieldGrid path={path} fields={fields} needed={needed} few={FEW_NESTED} />
    </fieldset>
  );
}

/** Fields that are needed or given, and the others behind a word. */
export function FieldGrid(props: {
  path: Path;
  fields: readonly [string, Schema][];
  needed: readonly string[];
  more?: string;
  few?: number;
}) {
  const { path, fields, needed, few = FEW } = props;
  const value = useValue(path);
  // A field that is given meanwhile stays where it is: it would be lost to the one who is typing.
  const [given] = useState(() => (isObject(value) ? Object.keys(value).filter((name) => value[name] !== null) : []));
  const first = fields.filter(([name]) => needed.includes(name));
  const others = fields.filter(([name]) => !needed.includes(name));
  const isFew = others.length <= few;
  const shown = others.filter(([name]) => isFew || given.includes(name));
  const hidden = isFew ? [] : others.filter(([name]) => !given.includes(name));
  return (
    <>
      {first.length + shown.length > 0 && (
        <div className="grid">
          {[...first, ...shown].map(([name, schema]) => (
            <Field key={name} path={[...path, name]} schema={schema} isNeeded={needed.includes(name)} />
          ))}
        </div>
      )}
      {hidden.length > 0 && (
        <details>
          <summary>{props.more ?? "More"}</summary>
          <div className="grid">
            {hidden.map(([name, schema]) => (
              <Field key={name} path={[...path, name]} schema={schema} />
            ))}
          </div>
        </details>
      )}
    </>
  );
}
