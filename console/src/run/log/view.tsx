/** The lines in sight. The others are not in the page, however many there are. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, memo, useEffect, useRef } from "react";
import { inUtc } from "../../lib/time";
import type { LogState } from "./follower";
import { type Line, pieces } from "./lines";
import type { Options } from "./tools";

export const LINE_PX = 19;
const NEAR_END_PX = 30;
const SPARE_PX = 20;

interface LogViewProps {
  state: LogState;
  word: string;
  /** The line that was jumped to. */
  at: number | null;
  options: Options;
  attempts: number;
  isFollowing: boolean;
  onFollow: (follows: boolean) => void;
}

export function LogView({ state, word, at, options, attempts, isFollowing, onFollow }: LogViewProps) {
  const { lines } = state;
  const scrolled = useRef<HTMLDivElement>(null);
  const top = useRef(0);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scrolled.current,
    estimateSize: () => LINE_PX,
    overscan: 20,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: with every change, the end is somewhere else
  useEffect(() => {
    if (isFollowing && lines.length) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [isFollowing, state.version, options.wraps]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a jump moves the view
  useEffect(() => {
    if (at !== null) virtual.scrollToIndex(at, { align: "center" });
  }, [at]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: heights are others then
  useEffect(() => virtual.measure(), [options.wraps]);
  const onScroll = () => {
    const element = scrolled.current;
    if (!element) return;
    const rest = element.scrollHeight - element.scrollTop - element.clientHeight;
    if (element.scrollTop < top.current - 2 && rest > NEAR_END_PX) onFollow(false);
    else if (rest < 2 && !state.hasEnded) onFollow(true);
    top.current = element.scrollTop;
  };
  return (
    <section
      ref={scrolled}
      className="log-lines"
      data-wraps={options.wraps}
      // No higher than the log is.
      style={{ "--log-height": `${virtual.getTotalSize() + SPARE_PX}px` } as CSSProperties}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so that keys must reach it
      tabIndex={0}
      aria-label="Log"
      onScroll={onScroll}
    >
      {lines.length === 0 && (
        <p className="faint log-none">
          {state.isReading ? "Reading…" : state.hasEnded ? "It printed nothing." : "Nothing yet."}
        </p>
      )}
      <div className="log-all" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((row) => {
          const line = lines[row.index];
          if (!line) return null;
          return (
            <div
              key={row.key}
              ref={options.wraps ? virtual.measureElement : undefined}
              data-index={row.index}
              className="log-row"
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <LogLine
                line={line}
                word={word}
                withTime={options.times}
                attempt={attempts > 1 && lines[row.index - 1]?.attempt !== line.attempt ? line.attempt : null}
                isAt={row.index === at}
              />
            </div>
          );
        })}
      </div>
    </section>
  );
}

const STREAMS: Readonly<Record<string, string>> = { stdout: "", stderr: "err", system: "sys" };
const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
});

interface LogLineProps {
  line: Line;
  word: string;
  withTime: boolean;
  /** Of the first line of an attempt. */
  attempt: number | null;
  isAt: boolean;
}

const LogLine = memo(function LogLine({ line, word, withTime, attempt, isAt }: LogLineProps) {
  return (
    <div className="log-line" data-stream={line.stream} data-at={isAt} data-begins={attempt !== null}>
      {withTime && (
        <time dateTime={line.at} title={inUtc(line.at)}>
          {clock.format(new Date(line.at))}
        </time>
      )}
      <span className="stream">{STREAMS[line.stream] ?? line.stream}</span>
      {attempt !== null && <span className="of-attempt">Attempt {attempt}</span>}
      <span className="text">
        {word
          ? pieces(line.text, word).map((piece, number) =>
              // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text never change places
              piece.isFound ? <mark key={number}>{piece.text}</mark> : <span key={number}>{piece.text}</span>,
            )
          : line.text || " "}
      </span>
    </div>
  );
});
