/** A job's definition as JSON has it. What is right in it, the server judges. */

export type Definition = Record<string, unknown>;
export type Path = readonly (string | number)[];

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What is at a path, if anything is. */
export function at(value: unknown, path: Path): unknown {
  let here = value;
  for (const key of path) {
    if (isObject(here)) here = here[key];
    else if (Array.isArray(here) && typeof key === "number") here = here[key];
    else return undefined;
  }
  return here;
}

/** As the API names a field: tasks[0].run.command. */
export function named(path: Path): string {
  return path.reduce<string>((text, key) => text + (typeof key === "number" ? `[${key}]` : `${text && "."}${key}`), "");
}
