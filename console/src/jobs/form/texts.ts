/** Values as text in a field, and back. */

import { useState } from "react";
import { asWritten, readValue } from "../value";
import { asLine, asWords } from "./shell";

/** What a text says: a value, nothing (the field is taken out), or nothing that can be read. */
export type Said = { value: unknown } | { wrong: string };

export interface Spelling {
  write: (value: unknown) => string;
  read: (text: string, before: unknown) => Said;
}

const NUMBER = /^-?\d+(\.\d+)?$/;

export const TEXT: Spelling = {
  write: (value) => (typeof value === "string" ? value : value === undefined || value === null ? "" : asWritten(value)),
  read: (text) => ({ value: text === "" ? undefined : text }),
};

/** Numbers, and durations such as 90 or 1h30m. */
export const NUMBER_OR_TEXT: Spelling = {
  write: TEXT.write,
  read: (text) => ({ value: text === "" ? undefined : NUMBER.test(text.trim()) ? Number(text) : text.trim() }),
};

/** Several, with commas between them. */
export const COMMAS: Spelling = {
  write: (value) => (Array.isArray(value) ? value.join(", ") : TEXT.write(value)),
  read: (text) => {
    const parts = text.split(",").map((part) => part.trim());
    const given = parts.filter((part) => part !== "");
    return { value: given.length ? given.map((part) => (NUMBER.test(part) ? Number(part) : part)) : undefined };
  },
};

export const COMMA_WORDS: Spelling = {
  write: COMMAS.write,
  read: (text) => {
    const given = text.split(",").map((part) => part.trim());
    const some = given.filter((part) => part !== "");
    return { value: some.length ? some : undefined };
  },
};

/** A list of words stays one, a line stays a line. */
export const COMMAND: Spelling = {
  write: (value) => (Array.isArray(value) ? asLine(value) : TEXT.write(value)),
  read: (text, before) => {
    if (!Array.isArray(before)) return { value: text };
    return { value: asWords(text) ?? text };
  },
};

export const YAML: Spelling = {
  write: (value) => (value === undefined ? "" : asWritten(value)),
  read: (text) => {
    if (text.trim() === "") return { value: undefined };
    const said = readValue(text);
    return "wrong" in said ? said : { value: said.value };
  },
};

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/**
 * The text of a field while somebody types: their own spelling for as long as it says what the document has, else the
 * document's, which may have been changed elsewhere.
 */
export function useSpelled(value: unknown, spelling: Spelling, change: (value: unknown) => void) {
  const [own, setOwn] = useState<{ text: string; for: unknown } | null>(null);
  const said = own && spelling.read(own.text, value);
  const isOwn = own && said && ("value" in said ? same(said.value, value) : same(own.for, value));
  const text = isOwn ? own.text : spelling.write(value);
  const wrong = isOwn && "wrong" in said ? said.wrong : null;
  const type = (typed: string) => {
    const read = spelling.read(typed, value);
    setOwn({ text: typed, for: value });
    if ("value" in read && !same(read.value, value)) change(read.value);
  };
  return { text, wrong, type };
}
