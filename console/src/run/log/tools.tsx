/** What is above a log: search, the attempt, and how it is shown. */

import { type KeyboardEvent, type ReactNode, useState } from "react";
import { CheckField } from "../../ui/form";
import { Button, SearchBox } from "../../ui/parts";

export interface Options {
  times: boolean;
  wraps: boolean;
}

const STORED = "sweephand.log";
const FIRST: Options = { times: false, wraps: true };

function stored(): Options {
  try {
    return { ...FIRST, ...(JSON.parse(localStorage.getItem(STORED) ?? "{}") as Partial<Options>) };
  } catch {
    return FIRST; // safe: it only says how a log is shown
  }
}

/** Kept for this browser. */
export function useOptions(): [Options, (name: keyof Options, value: boolean) => void] {
  const [options, setOptions] = useState(stored);
  const set = (name: keyof Options, value: boolean) => {
    const next = { ...options, [name]: value };
    localStorage.setItem(STORED, JSON.stringify(next));
    setOptions(next);
  };
  return [options, set];
}

interface LogToolsProps {
  word: string;
  onWord: (word: string) => void;
  found: readonly number[];
  at: number | null;
  go: (step: 1 | -1) => void;
  attempts: number;
  attempt: number | null;
  onAttempt: (attempt: number | null) => void;
  options: Options;
  onOption: (name: keyof Options, value: boolean) => void;
  isFollowing: boolean;
  onFollow: (follows: boolean) => void;
  canFollow: boolean;
  children: ReactNode;
}

export function LogTools(props: LogToolsProps) {
  const { word, onWord, found, at, go, attempts, attempt, onAttempt, options, onOption } = props;
  const jump = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    go(event.shiftKey ? -1 : 1);
  };
  const place = at === null ? -1 : found.indexOf(at);
  return (
    <div className="log-tools">
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it only hears a key of the field in it */}
      <div className="row grow" onKeyDown={jump}>
        <SearchBox value={word} onChange={onWord} label="Search the log" />
        {word && (
          <>
            <span className="soft number" role="status">
              {found.length === 0 ? "None" : `${place < 0 ? "–" : place + 1} of ${found.length.toLocaleString()}`}
            </span>
            <Button kind="quiet" small aria-label="Previous match" disabled={!found.length} onClick={() => go(-1)}>
              ↑
            </Button>
            <Button kind="quiet" small aria-label="Next match" disabled={!found.length} onClick={() => go(1)}>
              ↓
            </Button>
          </>
        )}
      </div>
      <div className="row wrap">
        {attempts > 1 && (
          <select
            className="input attempt"
            aria-label="Attempt"
            value={attempt ?? ""}
            onChange={(event) => onAttempt(event.target.value ? Number(event.target.value) : null)}
          >
            <option value="">All attempts</option>
            {Array.from({ length: attempts }, (_, index) => attempts - index).map((number) => (
              <option key={number} value={number}>
                Attempt {number}
              </option>
            ))}
          </select>
        )}
        <CheckField label="Times" checked={options.times} onChange={(value) => onOption("times", value)} />
        <CheckField label="Wrap" checked={options.wraps} onChange={(value) => onOption("wraps", value)} />
        {props.canFollow && <CheckField label="Follow" checked={props.isFollowing} onChange={props.onFollow} />}
        {props.children}
      </div>
    </div>
  );
}
