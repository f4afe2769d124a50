/** A job's definition as JSON has it. What is in it, the server judges. */

export type Json = unknown;
export type Definition = Record<string, Json>;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
