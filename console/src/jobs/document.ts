/**
 * A job as YAML text, which is what is edited: by hand, or by a form that changes single fields and leaves comments,
 * order and spelling of everything else as they are.
 */

import {
  Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { type Definition, isObject, type Path } from "./definition";

export interface Place {
  from: number;
  to: number;
}

export interface Misread extends Place {
  message: string;
}

/** A text, and what it says. */
export interface Written {
  text: string;
  doc: Document.Parsed;
  /** Null where the text cannot be read. */
  value: Definition | null;
  misread: readonly Misread[];
}

// YAML 1.1 still counts for others who read the same file: what would be no text there is quoted.
const READ = { merge: true, compat: "yaml-1.1", prettyErrors: false, logLevel: "silent" } as const;
const WRITE = { lineWidth: 0, flowCollectionPadding: false } as const;
const ALIASES_MAX = 100;
const FLOW_CHARS_MAX = 72;

/** Fields are put in where people look for them. */
const ORDER = [
  ...["id", "name", "description", "template", "with", "schedule", "dependencies", "cron", "every", "at", "timezone"],
  ...["dst", "startAt", "endAt", "jitter", "calendar", "blackouts", "after", "datasets", "events", "catchup"],
  ...["overlap", "startDeadline", "concurrency", "priority", "guarantee", "needs", "when", "if", "map", "retry"],
  ...["retries", "timeout", "runTimeout", "onFailure", "deadline", "pauseAfterFailures", "cache", "publishes"],
  ...["notify", "params", "tags", "group", "pool", "slots", "labels", "tasks", "run", "command"],
];

/** Fields whose short form is one value, and what that value is in the long form. */
const SHORT: Readonly<Record<string, string>> = { schedule: "cron", catchup: "policy" };

export function read(text: string): Written {
  const doc = parseDocument(text, READ);
  const misread: Misread[] = doc.errors.map((error) => {
    const [from, to] = error.pos;
    return { message: sentence(error.message), from, to: Math.max(to, from + 1) };
  });
  if (misread.length) return { text, doc, value: null, misread };
  let value: unknown;
  try {
    value = doc.toJS({ maxAliasCount: ALIASES_MAX }) ?? {};
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { text, doc, value: null, misread: [{ message: sentence(message), from: 0, to: text.length }] };
  }
  if (isObject(value)) return { text, doc, value, misread };
  const message = "A job is written as fields, such as name: daily-report.";
  return { text, doc, value: null, misread: [{ message, from: 0, to: text.length }] };
}

/** A definition as text of our own making. */
export function written(definition: Definition): string {
  const doc = new Document(definition, { compat: "yaml-1.1" });
  tidy(doc.contents);
  return doc.toString(WRITE);
}

/** The same document with its tree changed by hand. */
export function edited(now: Written, edit: (doc: Document.Parsed) => void): Written {
  if (now.value === null) return now;
  const doc = now.doc.clone() as Document.Parsed;
  edit(doc);
  return read(doc.toString(WRITE));
}

/** With a value at a path; undefined takes the field out, and what is empty without it. */
export function changed(now: Written, path: Path, value: unknown): Written {
  return edited(now, (doc) => {
    if (value === undefined) remove(doc, path);
    else put(doc, path, value);
  });
}

export function put(doc: Document, path: Path, value: unknown): void {
  const last = path.at(-1);
  if (last === undefined) return;
  const parent = opened(doc, path.slice(0, -1), typeof last === "number");
  const before = parent.get(last, true);
  if (isScalar(before) && !isCollection(value) && !isObject(value) && !Array.isArray(value)) {
    // Quotes that stood for nothing are no spelling to keep.
    if (before.value === "") before.type = "PLAIN";
    before.value = value;
    if (typeof value === "string" && !value.includes("\n") && before.type?.startsWith("BLOCK")) before.type = "PLAIN";
    return;
  }
  const node = tidy(doc.createNode(value));
  if (isMap(parent) && !parent.has(last)) insertInOrder(doc, parent, String(last), node);
  else parent.set(last, node);
}

export function remove(doc: Document, path: Path): void {
  doc.deleteIn([...path]);
  for (let length = path.length - 1; length > 0; length -= 1) {
    const parent = doc.getIn(path.slice(0, length), true);
    // An item of a list stays, and so does a step, which may be of a kind that has nothing more to say.
    const isKept = typeof path[length - 1] === "number" || path[length - 1] === "run" || path[length - 2] === "run";
    if (!isMap(parent) || parent.items.length > 0 || isKept) return;
    doc.deleteIn(path.slice(0, length));
  }
}

/** The collection at a path, made on the way where it is not there or is something else. */
function opened(doc: Document, path: Path, isList: boolean): YAMLMap | YAMLSeq {
  if (!isCollection(doc.contents)) doc.contents = doc.createNode({}) as never;
  let here = doc.contents as unknown as YAMLMap | YAMLSeq;
  path.forEach((key, depth) => {
    let next = here.get(key, true) as Node | undefined;
    if (isAlias(next)) {
      next = doc.createNode(next.toJS(doc)) as Node;
      here.set(key, next);
    }
    if (depth === 0 && isScalar(next) && next.value !== null && SHORT[String(key)]) {
      next = doc.createNode({ [SHORT[String(key)] as string]: next.value }) as Node;
      here.set(key, next);
    }
    if (!isCollection(next)) {
      const made = doc.createNode((depth === path.length - 1 ? isList : typeof path[depth + 1] === "number") ? [] : {});
      if (isMap(here) && !here.has(key)) insertInOrder(doc, here, String(key), made);
      else here.set(key, made);
      next = made as Node;
    }
    here = next as YAMLMap | YAMLSeq;
  });
  if (isCollection(here) && here.items.length === 0) here.flow = false;
  return here;
}

function insertInOrder(doc: Document, map: YAMLMap, key: string, value: unknown): void {
  const rank = ORDER.indexOf(key);
  const pair = doc.createPair(key, value) as Pair;
  const later = rank < 0 ? -1 : map.items.findIndex((item) => ORDER.indexOf(String(item.key)) > rank);
  if (later < 0) map.items.push(pair);
  else map.items.splice(later, 0, pair);
}

/** Short lists of words on one line. */
function tidy<T>(node: T): T {
  visit(node as never, {
    Seq: (_key, list) => {
      const words = list.items.map((item) => (isScalar(item) ? String(item.value) : null));
      const isShort = words.every((word) => word !== null && !word.includes("\n"));
      if (isShort && words.join(", ").length <= FLOW_CHARS_MAX) list.flow = true;
    },
  });
  return node;
}

function sentence(message: string): string {
  const text = message.replace(/\s+at line \d+, column \d+:?[\s\S]*$/, "").trim();
  return /[.:!?]$/.test(text) ? text : `${text}.`;
}

/** Such as ["tasks", 0, "run", "command"] of "tasks[0].run.command", which is how the API names a field. */
export function pathOf(text: string): (string | number)[] {
  return [...text.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, index, name]) =>
    index === undefined ? (name ?? "") : Number(index),
  );
}

/** Where a field is in the text: its value, else its name, else what it would be in. */
export function placeOf(now: Written, path: string): Place {
  let here: unknown = now.doc.contents;
  const end = now.text.indexOf("\n");
  let place: Place = { from: 0, to: end > 0 ? end : now.text.length };
  const rest = pathOf(path);
  while (rest.length) {
    if (isAlias(here)) here = here.resolve(now.doc);
    if (isMap(here)) {
      const pair = pairOf(here, rest);
      if (!pair) break;
      here = pair.value;
      place = within(isScalar(here) && rangeOf(here) ? here : pair.key) ?? place;
    } else if (isSeq(here)) {
      here = here.items[Number(rest.shift())];
      const first = isMap(here) ? here.items[0]?.key : here;
      place = within(first) ?? place;
    } else break;
  }
  return place.to > place.from ? place : { from: place.from, to: place.from + 1 };
}

/** The field that a path goes on with; names may have dots in them. */
function pairOf(map: YAMLMap, rest: (string | number)[]): Pair | undefined {
  for (let count = 1; count <= rest.length; count += 1) {
    const name = rest.slice(0, count).join(".");
    const pair = map.items.find((item) => isScalar(item.key) && String(item.key.value) === name);
    if (pair) {
      rest.splice(0, count);
      return pair;
    }
  }
  return undefined;
}

function rangeOf(node: unknown): readonly number[] | null | undefined {
  return (node as Node | null)?.range;
}

function within(node: unknown): Place | null {
  const range = rangeOf(node);
  return range ? { from: range[0] ?? 0, to: range[1] ?? 0 } : null;
}

export function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}
