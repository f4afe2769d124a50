/** The small parts that every page is made of. */

import type { ButtonHTMLAttributes, ReactNode } from "react";
import { useId, useState } from "react";
import { Link } from "wouter";
import { messageOf } from "../api/problem";
import { useNow } from "../lib/hooks";
import { lookOf, type Tone } from "../lib/states";
import { between, briefly, fromNow, inFull, inUtc, lasting } from "../lib/time";
import { Icon, type IconName } from "./icons";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "plain" | "primary" | "danger" | "quiet";
  small?: boolean;
  icon?: IconName;
  busy?: boolean;
}

export function Button({ kind = "plain", small, icon, busy, children, className, disabled, ...more }: ButtonProps) {
  const names = ["button", kind, small && "small", children === undefined && "icon-only", className];
  return (
    <button
      type="button"
      className={names.filter(Boolean).join(" ")}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      {...more}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export function LinkButton(props: { href: string; kind?: "plain" | "primary"; icon?: IconName; children: ReactNode }) {
  return (
    <Link href={props.href} className={`button ${props.kind ?? "plain"}`}>
      {props.icon && <Icon name={props.icon} />}
      {props.children}
    </Link>
  );
}

/** A state in colour, with a glyph and a word, since colour alone says nothing to many. */
export function StatePill({ state, title }: { state: string; title?: string | null }) {
  const { label, tone, glyph } = lookOf(state);
  return (
    <span className="pill" data-tone={tone} title={title ?? undefined}>
      <span className="glyph" aria-hidden="true">
        {glyph}
      </span>
      {label}
    </span>
  );
}

/** One run of several in a row; newest last. */
export function Square({ state, href, title }: { state: string; href: string; title: string }) {
  return (
    <Link href={href} className="square" data-tone={lookOf(state).tone} title={title} aria-label={title}>
      <span className="visually-hidden">{title}</span>
    </Link>
  );
}

export function Tag({ children }: { children: ReactNode }) {
  return <span className="tag">{children}</span>;
}

/** A moment in the user's zone; UTC on hover, and for those who read with a screen reader the day as well. */
export function Moment({ at, relative = false }: { at: string | null | undefined; relative?: boolean }) {
  const now = useNow(relative && at ? 5_000 : null);
  if (!at) return <span className="faint">–</span>;
  return (
    <time dateTime={at} title={`${inFull(at)} · ${inUtc(at)}`} className="number">
      {relative ? fromNow(at, now) : briefly(at)}
    </time>
  );
}

/** How long it took, or takes so far. */
export function Lasted({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  const now = useNow(from && !to ? 1_000 : null);
  const ms = between(from, to, now.getTime());
  return ms === null ? <span className="faint">–</span> : <span className="number">{lasting(ms)}</span>;
}

export function Progress({ value, label }: { value: number; label: string }) {
  const bounded = Math.min(100, Math.max(0, value));
  return (
    <div
      className="bar"
      role="progressbar"
      aria-valuenow={bounded}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-label={label}
    >
      <span style={{ width: `${bounded}%` }} />
    </div>
  );
}

export function Notice({ tone = "muted", children }: { tone?: Tone; children: ReactNode }) {
  return (
    <div className="notice" data-tone={tone} role={tone === "bad" ? "alert" : undefined}>
      <div className="grow stack">{children}</div>
    </div>
  );
}

export function Wrong({ error, again }: { error: unknown; again?: () => void }) {
  return (
    <Notice tone="bad">
      <div className="row wrap between">
        <span className="grow">{messageOf(error)}</span>
        {again && (
          <Button small onClick={again}>
            Try again
          </Button>
        )}
      </div>
    </Notice>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Loading({ lines = 4 }: { lines?: number }) {
  return (
    <div className="stack" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines that never move
        <div key={line} className="skeleton" style={{ width: `${92 - ((line * 17) % 45)}%` }} />
      ))}
    </div>
  );
}

interface Fetched<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** What a query found; meanwhile or instead, that it is under way or why it is not there. */
export function Found<T>({
  query,
  lines,
  children,
}: {
  query: Fetched<T>;
  lines?: number;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <Wrong error={query.error} again={() => void query.refetch()} />;
  return <Loading lines={lines} />;
}

export function Sheet(props: {
  title?: ReactNode;
  actions?: ReactNode;
  flush?: boolean;
  label?: string;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section
      className="sheet"
      aria-labelledby={props.title ? id : undefined}
      aria-label={props.title ? undefined : props.label}
    >
      {props.title && (
        <header>
          <h2 id={id}>{props.title}</h2>
          {props.actions}
        </header>
      )}
      <div className={props.flush ? "scroll-x" : "inside"}>{props.children}</div>
    </section>
  );
}

export interface Crumb {
  label: string;
  href?: string;
}

export function PageHead(props: {
  title: ReactNode;
  crumbs?: readonly Crumb[];
  below?: ReactNode;
  children?: ReactNode;
}) {
  return (
    <header className="page-head">
      <div className="titles">
        {props.crumbs && (
          <nav aria-label="Breadcrumb">
            <ol className="crumbs">
              {props.crumbs.map((crumb) => (
                <li key={crumb.label}>{crumb.href ? <Link href={crumb.href}>{crumb.label}</Link> : crumb.label}</li>
              ))}
            </ol>
          </nav>
        )}
        <h1>{props.title}</h1>
        {props.below && <div className="row wrap soft">{props.below}</div>}
      </div>
      {props.children && <div className="actions">{props.children}</div>}
    </header>
  );
}

/** Copies a text; says so for a moment. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <Button
      kind="quiet"
      small
      icon={copied ? "check" : "copy"}
      onClick={() => void copy()}
      aria-label={copied ? "Copied" : `Copy ${what}`}
    />
  );
}

export function SearchBox(props: { value: string; onChange: (value: string) => void; label: string }) {
  return (
    <div className="search">
      <Icon name="search" />
      <input
        className="input"
        type="search"
        data-search
        value={props.value}
        placeholder={props.label}
        aria-label={props.label}
        onChange={(event) => props.onChange(event.target.value)}
      />
    </div>
  );
}

export function Kbd({ keys }: { keys: string }) {
  return (
    <span className="row">
      {keys.split(" ").map((key) => (
        <kbd key={key} className="kbd">
          {key}
        </kbd>
      ))}
    </span>
  );
}
