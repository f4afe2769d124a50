/** Single values as people type them: YAML, so that 5 is a number, true is true, and all else is text. */

import { parseDocument, stringify } from "yaml";

export type ReadValue = { value: unknown } | { wrong: string };

export function readValue(text: string): ReadValue {
  if (text.trim() === "") return { value: "" };
  const read = parseDocument(text, { prettyErrors: false, logLevel: "silent" });
  const error = read.errors[0];
  if (error) return { wrong: `This is no value: ${error.message}` };
  return { value: read.toJS() };
}

/** The same value as text that reads back as it. */
export function asWritten(value: unknown): string {
  if (value === undefined || value === "") return "";
  return stringify(value, {
    collectionStyle: "flow",
    lineWidth: 0,
    flowCollectionPadding: false,
    compat: "yaml-1.1",
    nullStr: "null",
  }).trim();
}

export function kindInWords(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return { string: "text", number: "a number", boolean: "true or false" }[typeof value as string] ?? "an object";
}
