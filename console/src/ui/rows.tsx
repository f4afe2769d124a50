/** A list of any length: only the rows in sight are in the page, and more are fetched as the end comes near. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef } from "react";

interface RowsProps<T> {
  items: readonly T[];
  height: number;
  label: string;
  keyOf: (item: T) => string;
  children: (item: T) => ReactNode;
  /** At most so much of the window's height. */
  most?: string;
  more?: boolean;
  fetchMore?: () => void;
}

export function Rows<T>({
  items,
  height,
  label,
  keyOf,
  children,
  most = "70dvh",
  more = false,
  fetchMore,
}: RowsProps<T>) {
  const scrolled = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scrolled.current,
    estimateSize: () => height,
    overscan: 8,
    getItemKey: (index) => keyOf(items[index] as T),
  });
  const shown = virtual.getVirtualItems();
  const end = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && end >= items.length - 10) fetchMore?.();
  }, [more, end, items.length, fetchMore]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so that keys must reach it
    <section ref={scrolled} className="virtual" style={{ maxHeight: most }} tabIndex={0} aria-label={label}>
      <ul style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {shown.map((row) => (
          <li
            key={row.key}
            style={{
              position: "absolute",
              insetInline: 0,
              top: 0,
              height: row.size,
              transform: `translateY(${row.start}px)`,
            }}
          >
            {children(items[row.index] as T)}
          </li>
        ))}
      </ul>
    </section>
  );
}
