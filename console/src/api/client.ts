/** The API, typed by its OpenAPI document. */

import createClient, { type Middleware } from "openapi-fetch";
import { problemOf } from "./problem";
import type { components, paths } from "./schema";
import { session } from "./session";

export type Shape<Name extends keyof components["schemas"]> = components["schemas"][Name];

const carriesToken: Middleware = {
  onRequest({ request }) {
    const signedIn = session.get();
    if (signedIn && !request.headers.has("Authorization")) {
      request.headers.set("Authorization", `Bearer ${signedIn.token}`);
      if (!request.headers.has("X-Namespace")) request.headers.set("X-Namespace", signedIn.namespace);
    }
    // A plan changes nothing: its answers need not be kept, and there is one for every few keys that are pressed.
    if (request.method === "POST" && !request.url.endsWith("/plan") && !request.headers.has("Idempotency-Key")) {
      request.headers.set("Idempotency-Key", crypto.randomUUID());
    }
    return request;
  },
  onResponse({ request, response }) {
    // Only a refusal of the token that is in force ends the session: an older call may come back late.
    const own = request.headers.get("Authorization") === `Bearer ${session.get()?.token}`;
    if (response.status === 401 && own) session.end();
    return undefined;
  },
};

export const api = createClient<paths>({ baseUrl: `${globalThis.location?.origin ?? ""}/api/v1` });
api.use(carriesToken);

interface Answered<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer of a call; an `ApiError` where there is none. */
export async function answer<T>(call: Promise<Answered<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw problemOf(response.status, error);
  return data as T;
}
