/** What one may do; what one may not is not offered. The API decides all the same. */

import { useQuery } from "@tanstack/react-query";
import { of } from "../api/cache";
import { answer, api } from "../api/client";
import { useSession } from "../api/session";

export type Role = "viewer" | "operator" | "editor" | "admin";
const ORDER: readonly Role[] = ["viewer", "operator", "editor", "admin"];

export function useWho() {
  const signedIn = useSession();
  return useQuery({
    queryKey: [...of.admin, "who", signedIn?.namespace],
    queryFn: () => answer(api.GET("/session")),
    enabled: signedIn !== null,
    staleTime: 60_000,
  });
}

/** Whether the caller has at least this role in the namespace that is chosen. */
export function useMay(least: Role): boolean {
  const who = useWho();
  return who.data ? ORDER.indexOf(who.data.role as Role) >= ORDER.indexOf(least) : false;
}
