/** One step for many runs: those that are ticked, or all that the filters find. What it comes to is said first. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Shape } from "../api/client";
import { messageOf } from "../api/problem";
import { hasEnded } from "../lib/states";
import { Confirm } from "../ui/dialog";
import { Found, Notice } from "../ui/parts";
import { say } from "../ui/toasts";
import { Sentences } from "./actions";
import type { Asked } from "./list";
import type { RunInList } from "./rows";
import { counted, listed } from "./words";

export type Does = "cancel" | "rerun";

const AT_ONCE = 4;
const PAGE = 100;
const COUNT_PAGE = 1_000;
const COUNT_MOST = 10;

interface Outcome {
  done: number;
  refused: number;
  first: string;
}

interface TickedProps {
  does: Does;
  runs: readonly RunInList[];
  onDone: () => void;
  onClose: () => void;
}

export function TickedRuns({ does, runs, onDone, onClose }: TickedProps) {
  const [at, setAt] = useState(0);
  const fit = runs.filter(({ state }) => hasEnded(state) === (does === "rerun"));
  const jobs = [...new Set(fit.map(({ jobId }) => jobId))];
  const others = runs.length - fit.length;
  const run = async () => {
    const outcome = await each(fit, (one) => (does === "cancel" ? cancel(one) : rerun(one)), setAt);
    onDone();
    tell(does, outcome);
  };
  return (
    <Confirm
      title={does === "cancel" ? "Cancel these runs?" : "Run these again?"}
      does={does === "cancel" ? `Cancel ${counted(fit.length, "run")}` : `Rerun ${counted(fit.length, "run")}`}
      danger={does === "cancel"}
      run={run}
      onClose={onClose}
    >
      <Sentences
        of={[
          `${counted(fit.length, "run")} of ${listed(jobs)}.`,
          others ? `${counted(others, "run")} left alone: ${does === "cancel" ? "over already" : "not over yet"}.` : "",
          meaning(does),
        ].filter(Boolean)}
      />
      {at > 0 && <Done at={at} of={fit.length} />}
    </Confirm>
  );
}

interface FilteredProps {
  does: Does;
  asked: Asked;
  when: string;
  onDone: () => void;
  onClose: () => void;
}

export function FilteredRuns({ does, asked, when, onDone, onClose }: FilteredProps) {
  const [at, setAt] = useState(0);
  const counting = useQuery({
    queryKey: ["bulk", does, asked],
    queryFn: () => count(does, asked),
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
  const run = async () => {
    const outcome = await changeAll(does, asked, setAt);
    onDone();
    tell(does, outcome);
  };
  const only = does === "rerun" && !asked.state ? "failed runs" : asked.state ? `${asked.state} runs` : "open runs";
  const where = [asked.job && `of ${asked.job}`, asked.tag && `tagged ${asked.tag}`].filter(Boolean).join(" ");
  return (
    <Confirm
      title={does === "cancel" ? "Cancel all that match?" : "Rerun all that match?"}
      does={does === "cancel" ? "Cancel them" : "Rerun them"}
      danger={does === "cancel"}
      run={run}
      onClose={onClose}
    >
      <Found query={counting} lines={2}>
        {({ matched, isMore }) => (
          <Sentences
            of={[
              `A dry run found ${isMore ? "more than " : ""}${matched.toLocaleString()}: ${only} ${where} ${when}.`.replace(
                /\s+/g,
                " ",
              ),
              ...(does === "rerun" ? ["What was run again already is left alone."] : []),
              meaning(does),
            ]}
          />
        )}
      </Found>
      {at > 0 && <Done at={at} of={counting.data?.matched ?? at} />}
    </Confirm>
  );
}

function Done({ at, of }: { at: number; of: number }) {
  return (
    <Notice tone="busy">
      <span role="status">
        {at.toLocaleString()} of {Math.max(at, of).toLocaleString()} done.
      </span>
    </Notice>
  );
}

function meaning(does: Does): string {
  return does === "cancel"
    ? "What runs is ended, what waits never starts. A note in the audit log says so."
    : "Each becomes a new run of the same fire, in the version of its job that is in force now.";
}

function tell(does: Does, { done, refused, first }: Outcome): void {
  const what = `${counted(done, "run")} ${does === "cancel" ? "cancelled" : "started again"}.`;
  if (refused) say(`${what} ${refused.toLocaleString()} refused: ${first}`, "bad");
  else say(what);
}

async function each(
  runs: readonly RunInList[],
  step: (run: RunInList) => Promise<unknown>,
  tellAt: (at: number) => void,
): Promise<Outcome> {
  const outcome: Outcome = { done: 0, refused: 0, first: "" };
  const left = [...runs];
  const work = async () => {
    for (let one = left.shift(); one; one = left.shift()) {
      try {
        await step(one);
        outcome.done += 1;
      } catch (error) {
        outcome.refused += 1;
        outcome.first ||= messageOf(error);
      }
      tellAt(outcome.done + outcome.refused);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return outcome;
}

function cancel({ jobId, runId }: RunInList) {
  const path = { job: jobId, run: runId };
  return answer(api.POST("/jobs/{job}/runs/{run}/cancel", { params: { path }, body: { note: "with others" } }));
}

function rerun({ jobId, runId }: RunInList) {
  const path = { job: jobId, run: runId };
  const body = { from: "all" as const, note: "with others", task: null };
  return answer(api.POST("/jobs/{job}/runs/{run}/rerun", { params: { path }, body }));
}

function bodyOf(does: Does, { state, job, tag, from, to }: Asked, dryRun: boolean, limit: number, cursor?: string) {
  const filter: Shape<"RunFilter"> = {
    job: job || null,
    state: (state || null) as Shape<"RunFilter">["state"],
    tag: tag || null,
    from: from || null,
    to: to || null,
  };
  return { action: does, filter, dryRun, limit, cursor: cursor ?? null };
}

async function count(does: Does, asked: Asked): Promise<{ matched: number; isMore: boolean }> {
  let matched = 0;
  let cursor: string | undefined;
  for (let page = 0; page < COUNT_MOST; page += 1) {
    const found = await answer(api.POST("/runs/bulk", { body: bodyOf(does, asked, true, COUNT_PAGE, cursor) }));
    matched += found.matched;
    if (!found.nextCursor) return { matched, isMore: false };
    cursor = found.nextCursor;
  }
  return { matched, isMore: true };
}

async function changeAll(does: Does, asked: Asked, tellAt: (at: number) => void): Promise<Outcome> {
  const outcome: Outcome = { done: 0, refused: 0, first: "" };
  let cursor: string | undefined;
  do {
    const found = await answer(api.POST("/runs/bulk", { body: bodyOf(does, asked, false, PAGE, cursor) }));
    outcome.done += found.done;
    outcome.refused += found.matched - found.done;
    outcome.first ||= String(found.items.find((one) => one.error)?.error ?? "");
    tellAt(outcome.done + outcome.refused);
    cursor = found.nextCursor ?? undefined;
  } while (cursor);
  return outcome;
}
