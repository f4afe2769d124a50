/** What is around every page: where one can go, which namespace it is about, and who is signed in. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { cache } from "./api/cache";
import { answer, api } from "./api/client";
import { live, useLiveState } from "./api/live";
import { session, useSession } from "./api/session";
import { signOut } from "./api/signin";
import { type Shortcut, useShortcuts } from "./lib/keys";
import { useMay, useWho } from "./lib/roles";
import { useTheme } from "./lib/theme";
import { zone } from "./lib/time";
import { Dialog } from "./ui/dialog";
import { Icon, type IconName } from "./ui/icons";
import { Button, Kbd } from "./ui/parts";

interface Place {
  href: string;
  label: string;
  icon: IconName;
  keys?: string;
}

const DAILY: readonly Place[] = [
  { href: "/", label: "Overview", icon: "overview", keys: "g o" },
  { href: "/jobs", label: "Jobs", icon: "jobs", keys: "g j" },
  { href: "/runs", label: "Runs", icon: "runs", keys: "g r" },
  { href: "/backfills", label: "Backfills", icon: "backfill", keys: "g b" },
  { href: "/deadletters", label: "Dead letters", icon: "dead", keys: "g d" },
];
const HOUSE: readonly Place[] = [
  { href: "/workers", label: "Workers", icon: "workers", keys: "g w" },
  { href: "/shared", label: "Shared", icon: "shared", keys: "g s" },
  { href: "/audit", label: "Audit", icon: "audit", keys: "g a" },
  { href: "/access", label: "Access", icon: "access", keys: "g n" },
];

export function Frame({ children }: { children: ReactNode }) {
  const [path, go] = useLocation();
  const [open, setOpen] = useState(false);
  const [helping, setHelping] = useState(false);
  const mayEdit = useMay("editor");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu of a phone closes with every step
  useEffect(() => setOpen(false), [path]);
  const shortcuts = useMemo<Shortcut[]>(
    () => [
      ...[...DAILY, ...HOUSE].flatMap((place) =>
        place.keys ? [{ keys: place.keys, does: place.label, run: () => go(place.href) }] : [],
      ),
      { keys: "/", does: "Search on this page", run: focusSearch },
      ...(mayEdit ? [{ keys: "n", does: "New job", run: () => go("/jobs/new") }] : []),
      { keys: "?", does: "These shortcuts", run: () => setHelping(true) },
    ],
    [go, mayEdit],
  );
  useShortcuts(shortcuts);
  return (
    <>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <div className="top">
        <Button kind="quiet" icon="menu" aria-label="Menu" aria-expanded={open} onClick={() => setOpen(!open)} />
        <Brand />
      </div>
      <div className="frame">
        {open && <button type="button" className="veil" aria-label="Close the menu" onClick={() => setOpen(false)} />}
        <aside className="side" data-open={open}>
          <Brand />
          <nav aria-label="Pages">
            {DAILY.map((place) => (
              <To key={place.href} place={place} path={path} />
            ))}
            <h2>Behind it</h2>
            {HOUSE.map((place) => (
              <To key={place.href} place={place} path={path} />
            ))}
          </nav>
          <Foot help={() => setHelping(true)} />
        </aside>
        <main className="main" id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      {helping && <Help shortcuts={shortcuts} onClose={() => setHelping(false)} />}
    </>
  );
}

function Brand() {
  return (
    <Link href="/" className="brand">
      <img src="/hand.svg" alt="" width={24} height={24} />
      Sweephand
    </Link>
  );
}

function To({ place, path }: { place: Place; path: string }) {
  const here = place.href === "/" ? path === "/" : path === place.href || path.startsWith(`${place.href}/`);
  return (
    <Link href={place.href} aria-current={here ? "page" : undefined}>
      <Icon name={place.icon} />
      {place.label}
    </Link>
  );
}

function focusSearch(): void {
  document.querySelector<HTMLInputElement>("[data-search]")?.focus();
}

const CONNECTION: Readonly<Record<string, string>> = {
  off: "Not connected",
  connecting: "Connecting",
  on: "Live",
  lost: "Connection lost: trying again",
};

function Foot({ help }: { help: () => void }) {
  const signedIn = useSession();
  const who = useWho();
  const state = useLiveState();
  const [theme, setTheme] = useTheme();
  const dark = theme === "dark" || (theme === "system" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  return (
    <div className="side-foot">
      <ChooseNamespace chosen={signedIn?.namespace ?? ""} />
      <p className="faint cut" title={who.data?.caller}>
        {who.data ? `Signed in as ${who.data.role}` : " "}
      </p>
      <p className="faint" role="status">
        {CONNECTION[state]}
      </p>
      <p className="faint cut" title={`Times are shown in ${zone}`}>
        {zone}
      </p>
      <div className="row">
        <Button
          kind="quiet"
          small
          icon={dark ? "sun" : "moon"}
          aria-label={dark ? "Use light colours" : "Use dark colours"}
          onClick={() => setTheme(dark ? "light" : "dark")}
        />
        <Button kind="quiet" small icon="help" aria-label="Keyboard shortcuts" onClick={help} />
        <Button kind="quiet" small icon="leave" aria-label="Sign out" onClick={() => void signOut()} />
      </div>
    </div>
  );
}

function ChooseNamespace({ chosen }: { chosen: string }) {
  const names = useQuery({
    queryKey: ["admin", "namespaces", chosen],
    queryFn: async () => (await answer(api.GET("/namespaces", { params: { query: { limit: 200 } } }))).items,
    staleTime: 60_000,
  });
  const all = [...new Set([chosen, ...(names.data ?? []).map((one) => one.namespace)])].sort();
  const choose = (namespace: string) => {
    session.choose(namespace);
    cache.clear();
    live.start();
  };
  return (
    <select className="input" aria-label="Namespace" value={chosen} onChange={(event) => choose(event.target.value)}>
      {all.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

function Help({ shortcuts, onClose }: { shortcuts: readonly Shortcut[]; onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="facts">
        {shortcuts.map(({ keys, does }) => (
          <div key={keys} style={{ display: "contents" }}>
            <dt>
              <Kbd keys={keys} />
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
