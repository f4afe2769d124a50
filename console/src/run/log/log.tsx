/** What a task printed: followed while it goes on, searched, and taken along. */

import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { useSettled } from "../../lib/hooks";
import { Button, Notice, Wrong } from "../../ui/parts";
import { Download } from "./download";
import { Follower, LINES_MOST, TAIL } from "./follower";
import { nextFound, Search } from "./lines";
import { LogTools, type Options, useOptions } from "./tools";
import { LogView } from "./view";

interface LogProps {
  job: string;
  run: string;
  task: string;
  attempts: number;
}

export function Log({ job, run, task, attempts }: LogProps) {
  const [attempt, setAttempt] = useState<number | null>(null);
  const [fromBeginning, setFromBeginning] = useState(false);
  const [options, setOption] = useOptions();
  const [word, setWord] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  const [at, setAt] = useState<number | null>(null);
  const state = useLog(job, run, task, attempt, fromBeginning);
  const settled = useSettled(word, 200);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another log is searched anew
  const search = useMemo(() => new Search(settled), [settled, state.lines]);
  const found = search.in(state.lines);
  const go = (step: 1 | -1) => {
    const next = nextFound(found, at ?? (step > 0 ? -1 : state.lines.length), step);
    if (next === null) return;
    setFollowing(false);
    setAt(next);
  };
  const asked = { job, run, task, attempt };
  return (
    <div className="log">
      <LogTools
        word={word}
        onWord={(text) => {
          setWord(text);
          setAt(null);
        }}
        found={found}
        at={at}
        go={go}
        attempts={attempts}
        attempt={attempt}
        onAttempt={setAttempt}
        options={options}
        onOption={setOption}
        isFollowing={isFollowing}
        onFollow={setFollowing}
        canFollow={!state.hasEnded}
      >
        <Download asked={asked} />
      </LogTools>
      {state.error !== null && <Wrong error={state.error} />}
      {state.isCut && !fromBeginning && (
        <Notice>
          <div className="row wrap between">
            <span>These are the last lines, from {TAIL.toLocaleString()} before the end on.</span>
            <Button small onClick={() => setFromBeginning(true)}>
              Show all
            </Button>
          </div>
        </Notice>
      )}
      <LogView
        state={state}
        word={search.word}
        at={at}
        options={options}
        attempts={attempt === null ? attempts : 1}
        isFollowing={isFollowing && !fromBeginning}
        onFollow={setFollowing}
      />
      <LogFoot state={state} options={options} />
    </div>
  );
}

function LogFoot({ state }: { state: ReturnType<Follower["current"]>; options: Options }) {
  const lines = `${state.lines.length.toLocaleString()} ${state.lines.length === 1 ? "line" : "lines"}`;
  const isFull = state.lines.length >= LINES_MOST;
  return (
    <p className="faint row wrap" role="status">
      <span className="number">{lines}</span>
      {state.isReading && <span>Reading more…</span>}
      {!state.isReading && !state.hasEnded && <span>Following: new lines appear here.</span>}
      {state.hasEnded && !isFull && <span>No more will come.</span>}
      {isFull && <span>This is as much as a page can hold: download the log to see the rest.</span>}
      {state.isTruncated && !isFull && <span>Lines are missing: the log was longer than is kept, or was cut off.</span>}
    </p>
  );
}

function useLog(job: string, run: string, task: string, attempt: number | null, fromBeginning: boolean) {
  const follower = useMemo(
    () => new Follower({ job, run, task, attempt }, fromBeginning),
    [job, run, task, attempt, fromBeginning],
  );
  useEffect(() => {
    void follower.follow();
    return () => follower.stop();
  }, [follower]);
  return useSyncExternalStore(follower.watch, follower.current);
}
