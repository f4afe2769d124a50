/** Reads a log page by page, and goes on for as long as more may come. */

import { answer, api } from "../../api/client";
import { type Line, lineOf } from "./lines";

export interface Asked {
  job: string;
  run: string;
  task: string;
  attempt: number | null;
}

export interface LogState {
  lines: readonly Line[];
  /** Whether this began with the last lines, so that there may be more before them. */
  isCut: boolean;
  hasEnded: boolean;
  isTruncated: boolean;
  /** Still reading what is there already. */
  isReading: boolean;
  error: unknown;
  /** Changes whenever lines came: the list of them grows in place. */
  version: number;
}

export const TAIL = 1_000;
export const LINES_MOST = 200_000;
const PAGE = 1_000;
const WAIT_MS = 1_000;
const WAIT_HIDDEN_MS = 5_000;
const WAIT_WRONG_MS = 4_000;
const SHOW_MS = 200;

export class Follower {
  private state: LogState;
  private readonly lines: Line[] = [];
  private readonly changed = new Set<() => void>();
  private stopped = new AbortController();
  private after: string | undefined;
  private isFirst = true;
  private toldAt = 0;

  constructor(
    private readonly asked: Asked,
    private readonly fromBeginning: boolean,
  ) {
    const lines = this.lines;
    this.state = { lines, isCut: false, hasEnded: false, isTruncated: false, isReading: true, error: null, version: 0 };
  }

  current = (): LogState => this.state;

  watch = (changed: () => void): (() => void) => {
    this.changed.add(changed);
    return () => this.changed.delete(changed);
  };

  stop(): void {
    this.stopped.abort();
  }

  async follow(): Promise<void> {
    this.stopped = new AbortController();
    const { signal } = this.stopped;
    while (!signal.aborted && !this.state.hasEnded) {
      try {
        const page = await readLog(this.asked, this.nextPart(), signal);
        if (signal.aborted) return;
        this.take(page);
        if (this.lines.length >= LINES_MOST) this.tell({ isReading: false, hasEnded: true, isTruncated: true });
        else if (!page.more && !page.ended) await rest(document.hidden ? WAIT_HIDDEN_MS : WAIT_MS, signal);
      } catch (error) {
        if (signal.aborted) return;
        this.tell({ error, isReading: false });
        await rest(WAIT_WRONG_MS, signal);
      }
    }
  }

  private nextPart() {
    if (this.after) return { after: this.after, limit: PAGE };
    return this.isFirst && !this.fromBeginning ? { tail: TAIL } : { limit: PAGE };
  }

  private take(page: Awaited<ReturnType<typeof readLog>>): void {
    const { isFirst } = this;
    this.isFirst = false;
    this.after = page.nextCursor ?? this.after;
    for (const line of page.items) this.lines.push(lineOf(line));
    const now = performance.now();
    // A long log comes in hundreds of pages: not every one of them is worth a look.
    const isWorthIt = !page.more || isFirst || now - this.toldAt > SHOW_MS;
    const next = {
      hasEnded: page.ended,
      isReading: page.more,
      isTruncated: this.state.isTruncated || page.truncated,
      isCut: this.state.isCut || (isFirst && !this.fromBeginning && page.items.length >= TAIL),
      error: null,
    };
    if (isWorthIt && (page.items.length || isFirst || differs(this.state, next))) this.tell(next);
    else this.state = { ...this.state, ...next };
  }

  private tell(next: Partial<LogState>): void {
    this.toldAt = performance.now();
    this.state = { ...this.state, ...next, version: this.state.version + 1 };
    for (const changed of this.changed) changed();
  }
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = window.setTimeout(done, ms);
    signal.addEventListener("abort", () => {
      window.clearTimeout(timer);
      done();
    });
  });
}

function differs(state: LogState, next: Partial<LogState>): boolean {
  return (
    state.hasEnded !== next.hasEnded ||
    state.isReading !== next.isReading ||
    state.isTruncated !== next.isTruncated ||
    state.error !== null
  );
}

function readLog(
  { job, run, task, attempt }: Asked,
  part: { after?: string; tail?: number; limit?: number },
  signal: AbortSignal,
) {
  const query = { task, ...(attempt ? { attempt } : {}), ...part };
  return answer(api.GET("/jobs/{job}/runs/{run}/logs", { params: { path: { job, run }, query }, signal }));
}

/** All lines that there are now, as text. */
export async function wholeLog(asked: Asked, tell: (lines: number) => void, signal: AbortSignal): Promise<string> {
  const parts: string[] = [];
  let after: string | undefined;
  for (;;) {
    const page = await readLog(asked, { limit: PAGE, ...(after ? { after } : {}) }, signal);
    for (const { at, stream, text } of page.items) parts.push(`${at} ${stream} ${text}\n`);
    tell(parts.length);
    if (!page.more || !page.nextCursor) return parts.join("");
    after = page.nextCursor;
  }
}
