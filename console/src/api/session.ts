/**
 * Who is signed in. A token that lasts is only ever held in memory: what a reload finds, in this tab's session storage,
 * is a session of at most an hour.
 */

import { useSyncExternalStore } from "react";

export interface Session {
  /** What calls carry. */
  token: string;
  expiresAt: number;
  namespace: string;
}

interface Kept extends Session {
  refreshToken?: string;
}

export type Renewal = (kept: Kept) => Promise<{ token: string; expiresAt: number } | null>;

const STORED = "sweephand.session";
const listeners = new Set<() => void>();
let current: Kept | null = read();
/** The token that was typed in; it opens the next session when this one ends. */
let lasting: string | null = null;

function read(): Kept | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(STORED) ?? "null") as Kept | null;
    return found && found.expiresAt > Date.now() ? found : null;
  } catch {
    return null; // safe: whoever has no session signs in
  }
}

function set(next: Kept | null): void {
  current = next;
  if (next) sessionStorage.setItem(STORED, JSON.stringify(next));
  else sessionStorage.removeItem(STORED);
  for (const listener of listeners) listener();
}

export const session = {
  get: (): Session | null => current,
  lasting: (): string | null => lasting,
  kept: (): Kept | null => current,
  begin(next: Kept, token: string | null = null): void {
    lasting = token;
    set(next);
  },
  renewed(token: string, expiresAt: number, refreshToken?: string): void {
    if (current) set({ ...current, token, expiresAt, ...(refreshToken ? { refreshToken } : {}) });
  },
  choose(namespace: string): void {
    if (current) set({ ...current, namespace });
  },
  end(): void {
    lasting = null;
    set(null);
  },
};

export function useSession(): Session | null {
  return useSyncExternalStore(
    (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    () => current,
  );
}
