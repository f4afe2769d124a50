/** Names of fields and right values, offered where they can stand. */

import type { Completion, CompletionContext, CompletionResult, CompletionSource } from "@codemirror/autocomplete";
import type { Schema, Shapes } from "./shapes";
import { type Spot, spotAt } from "./spot";

const zones = typeof Intl.supportedValuesOf === "function" ? Intl.supportedValuesOf("timeZone") : [];

export function completing(shapes: () => Shapes | undefined): CompletionSource {
  return (context: CompletionContext): CompletionResult | null => {
    const known = shapes();
    const spot = known && spotAt(context.state.sliceDoc(0, context.pos));
    if (!spot || (!spot.word && !context.explicit && !context.matchBefore(/[\n{,:-]\s*$/))) return null;
    const options = optionsAt(known, spot, context.state.sliceDoc());
    return options.length ? { from: context.pos - spot.word.length, options, validFor: /^[\w@+/.-]*$/ } : null;
  };
}

export function optionsAt(shapes: Shapes, spot: Spot, text: string): Completion[] {
  const root = shapes.named("JobDefinition");
  if (spot.key !== null) return valuesOf(shapes, shapes.at(root, [...spot.path, spot.key]), spot.key);
  const last = spot.path.at(-1);
  if (typeof last === "number") {
    const name = spot.path.at(-2);
    if (name === "needs") return taskIds(text).map((id) => ({ label: id, type: "variable" }));
    const items = valuesOf(shapes, shapes.at(root, spot.path), String(name));
    if (items.length) return items;
  }
  const here = shapes.at(root, spot.path);
  const kind = last === "run" ? spot.used.find((name) => shapes.steps().has(name)) : undefined;
  const fields = shapes.fields(kind ? (shapes.steps().get(kind) ?? here) : here);
  const needed = shapes.required(here);
  return Object.entries(fields)
    .filter(([name]) => !spot.used.includes(name))
    .map(([name, schema]) => ({
      label: name,
      type: "property",
      apply: `${name}: `,
      detail: inWords(shapes, schema),
      info: shapes.description(schema) || undefined,
      boost: needed.includes(name) || (last === "run" && shapes.steps().has(name)) ? 2 : 0,
    }));
}

function valuesOf(shapes: Shapes, schema: Schema, key: string): Completion[] {
  if (key === "timezone") return zones.map((label) => ({ label, type: "constant" }));
  return (shapes.values(schema) ?? valuesAmong(shapes, schema)).map((value) => ({
    label: String(value),
    type: "constant",
  }));
}

/** Right values where other forms are right too, such as `latest` of catchup. */
function valuesAmong(shapes: Shapes, schema: Schema): unknown[] {
  return shapes.options(schema).flatMap((option) => (option.enum ?? []).filter((value) => value !== null));
}

function inWords(shapes: Shapes, schema: Schema): string {
  const options = shapes.options(schema);
  const values = shapes.values(schema);
  if (values) return values.slice(0, 4).join(" | ") + (values.length > 4 ? " | …" : "");
  if (options.some((option) => option.format === "period")) return "such as 1h30m";
  return [...new Set(options.map((option) => option.type).filter(Boolean))].join(" | ");
}

/** Found by their look: a text that is being written can rarely be read. */
function taskIds(text: string): string[] {
  const found = text.matchAll(/(?:^|[\s{,-])id:\s*["']?([A-Za-z0-9][\w.-]*)/g);
  return [...new Set([...found].map(([, id]) => id ?? ""))];
}
