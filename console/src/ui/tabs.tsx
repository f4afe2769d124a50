/** Tabs that are places: each has an address, so that one can be sent to somebody. */

import { Link } from "wouter";

export interface Tab {
  label: string;
  href: string;
  here: boolean;
}

export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.href} href={tab.href} aria-current={tab.here ? "page" : undefined}>
          {tab.label}
        </Link>
      ))}
    </nav>
  );
}
