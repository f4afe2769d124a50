/** What the API answers where it refuses: problem+json, as an error that pages can show. */

export interface FieldProblem {
  path: string;
  message: string;
}

export class ApiError extends Error {
  readonly status: number;
  readonly title: string;
  readonly fields: readonly FieldProblem[];

  constructor(status: number, title: string, detail: string, fields: readonly FieldProblem[] = []) {
    super(detail);
    this.status = status;
    this.title = title;
    this.fields = fields;
  }
}

export function problemOf(status: number, body: unknown): ApiError {
  const said = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const detail = typeof said.detail === "string" ? said.detail : "";
  const title = typeof said.title === "string" ? said.title : `Status ${status}`;
  return new ApiError(
    status,
    title,
    detail || title,
    Array.isArray(said.errors) ? (said.errors as FieldProblem[]) : [],
  );
}

/** A sentence for whatever was thrown. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof TypeError) return "The server cannot be reached. It may be stopped, or the network is down.";
  return error instanceof Error ? error.message : String(error);
}
