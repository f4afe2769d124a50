/** Light, dark, or as the system says; kept for this browser. */

import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const STORED = "sweephand.theme";
const listeners = new Set<() => void>();

function stored(): Theme {
  const found = localStorage.getItem(STORED);
  return found === "light" || found === "dark" ? found : "system";
}

let theme: Theme = "system";

export function applyTheme(next: Theme = stored()): void {
  theme = next;
  if (next === "system") {
    localStorage.removeItem(STORED);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(STORED, next);
    document.documentElement.dataset.theme = next;
  }
  for (const changed of listeners) changed();
}

export function useTheme(): [Theme, (next: Theme) => void] {
  const current = useSyncExternalStore(
    (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    () => theme,
  );
  return [current, applyTheme];
}
