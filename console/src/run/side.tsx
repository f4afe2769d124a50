/** A task beside the graph where there is room for it, else in a drawer over it. */

import { type ReactNode, useEffect, useRef } from "react";
import { useMedia } from "../lib/hooks";
import { Dialog } from "../ui/dialog";
import { Button } from "../ui/parts";

interface SideProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
}

export function useIsWide(): boolean {
  return useMedia("(min-width: 1200px)");
}

export function Side({ title, onClose, children }: SideProps) {
  const isWide = useIsWide();
  if (isWide) {
    return (
      <Beside title={title} onClose={onClose}>
        {children}
      </Beside>
    );
  }
  return (
    <Dialog kind="drawer" title={title} onClose={onClose}>
      {children}
    </Dialog>
  );
}

function Beside({ title, onClose, children }: SideProps) {
  const own = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    // Whoever came by a link to the task has not asked for anything yet.
    if (!(before instanceof HTMLElement) || before === document.body) return;
    own.current?.focus({ preventScroll: true });
    return () => before.focus({ preventScroll: true });
  }, []);
  return (
    <aside
      ref={own}
      className="sheet run-side"
      aria-label={title}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "Escape" && !event.defaultPrevented) onClose();
      }}
    >
      <header>
        <h2 className="cut" title={title}>
          {title}
        </h2>
        <Button kind="quiet" small icon="close" aria-label="Close" onClick={onClose} />
      </header>
      <div className="inside">{children}</div>
    </aside>
  );
}
