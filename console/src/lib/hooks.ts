import { useEffect, useState, useSyncExternalStore } from "react";

/** The present moment, again and again; off where nothing on screen grows older. */
export function useNow(everyMs: number | null = 1_000): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    if (everyMs === null) return;
    const timer = window.setInterval(() => setNow(new Date()), everyMs);
    return () => window.clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** A value once it has not changed for a moment. */
export function useSettled<T>(value: T, ms = 250): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), ms);
    return () => window.clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (changed) => {
      const list = window.matchMedia(query);
      list.addEventListener("change", changed);
      return () => list.removeEventListener("change", changed);
    },
    () => window.matchMedia(query).matches,
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Sweephand` : "Sweephand";
  }, [title]);
}

/** A part of the address's query, so that a view can be shared and comes back with the back button. */
export function useQueryPart(name: string, otherwise = ""): [string, (value: string) => void] {
  const search = useSyncExternalStore(onAddress, () => location.search);
  const value = new URLSearchParams(search).get(name) ?? otherwise;
  const set = (next: string) => {
    const query = new URLSearchParams(location.search);
    if (next && next !== otherwise) query.set(name, next);
    else query.delete(name);
    const text = query.toString();
    history.replaceState(history.state, "", `${location.pathname}${text ? `?${text}` : ""}`);
  };
  return [value, set];
}

function onAddress(changed: () => void): () => void {
  // wouter tells of pushState and replaceState by events of these names.
  const names = ["popstate", "pushState", "replaceState"];
  for (const name of names) window.addEventListener(name, changed);
  return () => {
    for (const name of names) window.removeEventListener(name, changed);
  };
}
