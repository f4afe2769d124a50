/** What definitions are made of, as the server's OpenAPI document says: fields, and the values that they may have. */

import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../api/client";
import { isObject, type Path } from "./definition";

export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
}

export class Shapes {
  private readonly kinds: ReadonlyMap<string, Schema>;

  constructor(private readonly components: Readonly<Record<string, Schema>>) {
    const kinds = new Map<string, Schema[]>();
    for (const option of this.options(this.named("Step"))) {
      const kind = option.required?.[0];
      if (kind) kinds.set(kind, [...(kinds.get(kind) ?? []), option]);
    }
    this.kinds = new Map([...kinds].map(([kind, options]) => [kind, either(options)]));
  }

  named(name: string): Schema {
    return this.components[name] ?? {};
  }

  resolved(schema: Schema): Schema {
    const name = schema.$ref?.split("/").at(-1);
    return name ? this.resolved(this.named(name)) : schema;
  }

  /** Each form that a value may have; that it may be null says no more than that it may be absent. */
  options(given: Schema): Schema[] {
    const schema = this.resolved(given);
    const inner = schema.anyOf ?? schema.oneOf;
    if (inner && !schema.properties) return inner.flatMap((one) => this.options(one));
    return schema.type === "null" ? [] : [schema];
  }

  /** The fields of an object of any of its forms. */
  fields(schema: Schema): Record<string, Schema> {
    const found: Record<string, Schema[]> = {};
    for (const option of this.options(schema)) {
      for (const [name, field] of Object.entries(option.properties ?? {})) {
        if (this.options(field).length) found[name] = [...(found[name] ?? []), field];
      }
    }
    return Object.fromEntries(Object.entries(found).map(([name, fields]) => [name, either(fields)]));
  }

  /** The fields without which it has none of its forms. */
  required(schema: Schema): string[] {
    const all = this.options(schema).filter((option) => option.properties);
    return (all[0]?.required ?? []).filter((name) => all.every((option) => option.required?.includes(name)));
  }

  /** The only values that are right, where there are any. */
  values(schema: Schema): unknown[] | null {
    const all: unknown[] = [];
    for (const option of this.options(schema)) {
      if (option.const !== undefined) all.push(option.const);
      else if (option.enum) all.push(...option.enum);
      else if (option.type === "boolean") all.push(true, false);
      else return null;
    }
    return all.length ? [...new Set(all.filter((value) => value !== null))] : null;
  }

  description(schema: Schema): string {
    return schema.description ?? this.resolved(schema).description ?? this.options(schema)[0]?.description ?? "";
  }

  /** What may stand at a path below a schema. */
  at(schema: Schema, path: Path): Schema {
    return path.reduce<Schema>((here, key) => {
      if (typeof key === "number") return either(this.options(here).flatMap((option) => option.items ?? []));
      const field = this.fields(here)[key];
      if (field) return field;
      return either(
        this.options(here).flatMap((option) =>
          isObject(option.additionalProperties) ? (option.additionalProperties as Schema) : [],
        ),
      );
    }, schema);
  }

  /** The kinds of steps that can be run here, each with all its forms. */
  steps(): ReadonlyMap<string, Schema> {
    return this.kinds;
  }
}

function either(schemas: readonly Schema[]): Schema {
  const seen = new Map(schemas.map((schema) => [JSON.stringify(schema), schema]));
  const [only] = seen.values();
  return seen.size === 1 && only ? only : { anyOf: [...seen.values()] };
}

export function shapesOf(document: unknown): Shapes {
  const components = isObject(document) && isObject(document.components) ? document.components.schemas : {};
  return new Shapes(components as Record<string, Schema>);
}

/** The document is asked for once: it changes with the server, and then the page is loaded again. */
export function useShapes() {
  return useQuery({
    queryKey: ["shapes"],
    queryFn: async () => shapesOf(await answer(api.GET("/openapi.json"))),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });
}
