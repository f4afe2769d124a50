/** Keys: single ones, and two in a row such as `g j`. Never while somebody types. */

import { useEffect, useRef } from "react";

export interface Shortcut {
  keys: string;
  does: string;
  run: () => void;
}

const IN_A_ROW_MS = 1_200;

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) || target.shadowRoot !== null
  );
}

export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const held = useRef(shortcuts);
  held.current = shortcuts;
  useEffect(() => {
    let first = "";
    let at = 0;
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const both = event.timeStamp - at < IN_A_ROW_MS ? `${first} ${event.key}` : event.key;
      const found =
        held.current.find(({ keys }) => keys === both) ?? held.current.find(({ keys }) => keys === event.key);
      first = found ? "" : event.key;
      at = event.timeStamp;
      if (found) {
        event.preventDefault();
        found.run();
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}
