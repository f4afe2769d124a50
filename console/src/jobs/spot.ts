/** Where in a definition one is typing: found by indentation, since what is half written is not YAML yet. */

import type { Path } from "./definition";

export interface Spot {
  /** Of the object or list that the cursor is in. */
  path: Path;
  /** The field whose value is being typed; null where it is a field's name, or an item of a list. */
  key: string | null;
  /** Fields that stand before it in the same object. */
  used: readonly string[];
  /** What is typed of the word so far. */
  word: string;
}

interface Frame {
  column: number;
  index: number | null;
  key: string;
  used: string[];
}

const KEY = /^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#{}[\],&*!|>%@`"'-][^#:]*?|-[^\s:][^#:]*?)\s*:(?=\s|$)/;
const WORD = /[\w@+/.-]*$/;

/** Null in a comment, in quotes and in blocks of text, where there is nothing to complete. */
export function spotAt(text: string): Spot | null {
  const lines = text.split("\n");
  const frames: Frame[] = [];
  let blockOver: number | null = null;
  for (const [number, line] of lines.entries()) {
    const isLast = number === lines.length - 1;
    const indent = line.length - line.trimStart().length;
    if (blockOver !== null && (indent > blockOver || (line.trim() === "" && !isLast))) {
      if (isLast) return null;
      continue;
    }
    blockOver = null;
    if (!isLast && (line.trim() === "" || line.trimStart().startsWith("#"))) continue;
    const { rest, column, isItem } = items(line, indent, frames);
    const key = KEY.exec(rest);
    if (key) enter(frames, column, unquoted(key[1] ?? ""));
    const value = key ? rest.slice(key[0].length).trimStart() : rest;
    if (isLast) return lastSpot(frames, column, key ? value : null, rest, isItem);
    if (/^[|>][-+0-9]*\s*(#.*)?$/.test(value)) blockOver = indent;
  }
  return null;
}

/** Past the dashes at the beginning of a line, each of which begins an item. */
function items(line: string, indent: number, frames: Frame[]) {
  let column = indent;
  let rest = line.slice(indent);
  let isItem = false;
  while (/^-(\s|$)/.test(rest)) {
    isItem = true;
    while (frames.length && (frames.at(-1)?.column ?? 0) > column) frames.pop();
    const top = frames.at(-1);
    if (top?.index != null && top.column === column) top.index += 1;
    else frames.push({ column, index: 0, key: "", used: [] });
    const dash = /^-\s*/.exec(rest)?.[0].length ?? 1;
    column += dash;
    rest = rest.slice(dash);
  }
  return { rest, column, isItem };
}

/** Go to the object that has its fields at this column. */
function settle(frames: Frame[], column: number): Frame | null {
  const isOut = (frame: Frame) => frame.column > column || (frame.index !== null && frame.column === column);
  while (frames.length && isOut(frames.at(-1) as Frame)) frames.pop();
  const top = frames.at(-1);
  return top && top.index === null && top.column === column ? top : null;
}

function enter(frames: Frame[], column: number, key: string): void {
  const own = settle(frames, column);
  if (own) {
    own.used.push(own.key);
    own.key = key;
  } else frames.push({ column, index: null, key, used: [] });
}

function lastSpot(frames: Frame[], column: number, value: string | null, rest: string, isItem: boolean): Spot | null {
  const typed = value ?? rest;
  if (/(^|\s)#/.test(typed)) return null;
  const flow = inFlow(typed);
  if (flow === "quotes") return null;
  const word = WORD.exec(typed)?.[0] ?? "";
  const own = value === null ? settle(frames, column) : null;
  if (value === null && !own && isItem === false && frames.length && column <= (frames.at(-1)?.column ?? 0))
    return null;
  const whole = frames.map((frame) => frame.index ?? frame.key);
  if (flow) {
    return { path: [...whole, ...flow.path], key: flow.key, used: flow.used, word };
  }
  if (value !== null) {
    const last = frames.at(-1);
    return { path: whole.slice(0, -1), key: last?.key ?? null, used: [], word };
  }
  if (own) return { path: whole.slice(0, -1), key: null, used: [...own.used, own.key], word };
  return { path: whole, key: null, used: [], word };
}

function unquoted(key: string): string {
  return /^["']/.test(key) ? key.slice(1, -1) : key;
}

interface Flow {
  path: (string | number)[];
  key: string | null;
  used: string[];
}

/** Inside braces or brackets that are still open on this line. */
function inFlow(text: string): Flow | "quotes" | null {
  const open: { index: number | null; key: string | null; used: string[] }[] = [];
  let quote = "";
  let word = "";
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    const here = open.at(-1);
    if (quote) {
      if (char === quote && text.charAt(at - 1) !== "\\") quote = "";
    } else if ((char === '"' || char === "'") && word.trim() === "") quote = char;
    else if (char === "{" && text.charAt(at - 1) !== "$") open.push({ index: null, key: null, used: [] });
    else if (char === "[") open.push({ index: 0, key: null, used: [] });
    else if (char === "}" || char === "]") open.pop();
    else if (here && char === "," && here.index !== null) here.index += 1;
    else if (here && char === ",") {
      if (here.key) here.used.push(here.key);
      here.key = null;
    } else if (here && char === ":" && here.index === null && /\s|^$/.test(text.charAt(at + 1))) here.key = word.trim();
    else {
      word += char;
      continue;
    }
    word = "";
  }
  if (quote) return "quotes";
  const last = open.at(-1);
  if (!last) return null;
  const path = open.slice(0, -1).map((frame) => frame.index ?? frame.key ?? "");
  if (last.index !== null) return { path: [...path, last.index], key: null, used: [] };
  return { path, key: last.key, used: last.used };
}
