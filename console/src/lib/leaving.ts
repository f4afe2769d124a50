/** Leaving a page on which something would be lost: whoever goes elsewhere is asked first. */

import { useEffect, useRef } from "react";
import type { AroundNavHandler } from "wouter";

type Ask = (go: () => void) => void;
let asking: Ask | null = null;

/** Every link and every step of ours goes through this. */
export const leaving: AroundNavHandler = (navigate, to, options) => {
  const go = () => navigate(to, options);
  const isElsewhere = new URL(to, location.href).pathname !== location.pathname;
  if (asking && isElsewhere) asking(go);
  else go();
};

/** While something would be lost, `ask` decides whether to go on; closing the window is the browser's to ask about. */
export function useLeaving(isUnsaved: boolean, ask: Ask): void {
  const held = useRef(ask);
  held.current = ask;
  useEffect(() => {
    if (!isUnsaved) return;
    asking = (go) => held.current(go);
    const closing = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", closing);
    return () => {
      asking = null;
      window.removeEventListener("beforeunload", closing);
    };
  }, [isUnsaved]);
}
