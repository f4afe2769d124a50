/** Who did something, by a name where one is known. */

import { useQuery } from "@tanstack/react-query";
import { of } from "../api/cache";
import { answer, api } from "../api/client";
import { useMay, useWho } from "../lib/roles";

const TOKEN = "token:";
const OURS: Readonly<Record<string, string>> = { "sweephand:up": "Sweephand itself" };

function useTokenNames(): ReadonlyMap<string, string> {
  const isAdmin = useMay("admin");
  const tokens = useQuery({
    queryKey: [...of.admin, "tokens", "names"],
    queryFn: async () => (await answer(api.GET("/tokens", { params: { query: { limit: 500 } } }))).items,
    enabled: isAdmin,
    staleTime: 60_000,
  });
  return new Map((tokens.data ?? []).map((token) => [token.id, token.name]));
}

export function Actor({ id }: { id: string }) {
  const who = useWho();
  const names = useTokenNames();
  const own = who.data && `${who.data.kind}:${who.data.caller}`;
  const name = id.startsWith(TOKEN) ? names.get(id.slice(TOKEN.length)) : undefined;
  const said = id === own ? "you" : name ? `${name} (token)` : (OURS[id] ?? id);
  return <span title={id}>{said}</span>;
}
