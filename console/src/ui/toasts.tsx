/** What was done, said for a few seconds; what went wrong stays until it is closed. */

import { useEffect, useRef, useSyncExternalStore } from "react";
import { messageOf } from "../api/problem";
import type { Tone } from "../lib/states";

interface Toast {
  id: number;
  text: string;
  tone: Tone;
}

const STAYS_MS = 5_000;
const MOST = 4;
let toasts: readonly Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const changed of listeners) changed();
}

function close(id: number): void {
  set(toasts.filter((toast) => toast.id !== id));
}

export function say(text: string, tone: Tone = "good"): void {
  last += 1;
  const id = last;
  set([...toasts, { id, text, tone }].slice(-MOST));
  if (tone !== "bad") window.setTimeout(() => close(id), STAYS_MS);
}

export function sayWrong(error: unknown): void {
  say(messageOf(error), "bad");
}

/** Do something and say how it ended. */
export async function doing(done: string, step: () => Promise<unknown>): Promise<boolean> {
  try {
    await step();
    say(done);
    return true;
  } catch (error) {
    sayWrong(error);
    return false;
  }
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    () => toasts,
  );
  const own = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // As a popover it stands above a dialog that is open.
    if (own.current?.showPopover && shown.length) {
      own.current.hidePopover();
      own.current.showPopover();
    } else own.current?.hidePopover?.();
  }, [shown]);
  return (
    <div className="toasts" role="status" aria-live="polite" ref={own} popover="manual">
      {shown.map((toast) => (
        <div key={toast.id} className="toast" data-tone={toast.tone}>
          <span>{toast.text}</span>
          <button type="button" aria-label="Close" onClick={() => close(toast.id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
