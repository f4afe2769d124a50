/** What all fields of the form share: the definition, how it is changed, and what is wrong with it. */

import { createContext, useContext, useMemo } from "react";
import type { Document } from "yaml";
import { at, type Definition, named, type Path } from "../definition";
import { changed, edited, type Written } from "../document";
import type { Shapes } from "../shapes";

export interface FieldProblem {
  path: string;
  message: string;
}

export interface FormContext {
  value: Definition;
  shapes: Shapes;
  headers: { "X-Namespace": string };
  isNew: boolean;
  /** Undefined takes a field out. */
  change: (path: Path, value: unknown) => void;
  edit: (how: (doc: Document.Parsed) => void) => void;
  problems: readonly FieldProblem[];
  /** The field that somebody wants to see. */
  opened: { path: string } | null;
}

const Context = createContext<FormContext | null>(null);
export const FormProvider = Context.Provider;

export function useForm(): FormContext {
  const form = useContext(Context);
  if (!form) throw new Error("A field is only of use in a form.");
  return form;
}

/** Ways to change a document that always begin with what it is at that moment. */
export function useChanges(set: (how: (now: Written) => Written) => void): Pick<FormContext, "change" | "edit"> {
  return useMemo(
    () => ({
      change: (path, value) => set((now) => changed(now, path, value)),
      edit: (how) => set((now) => edited(now, how)),
    }),
    [set],
  );
}

export function useValue(path: Path): unknown {
  return at(useForm().value, path);
}

/** What is wrong with a field, or below it where it shows no fields of its own. */
export function useWrong(path: Path, below = true): string | null {
  const { problems } = useForm();
  const name = named(path);
  const own = problems.filter(
    (problem) =>
      problem.path === name || (below && (problem.path.startsWith(`${name}.`) || problem.path.startsWith(`${name}[`))),
  );
  return own.length ? own.map((problem) => problem.message).join(" ") : null;
}
