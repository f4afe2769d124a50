/** Why is it not running? What the server says about a run or a task, with what would help. */

import { useQuery } from "@tanstack/react-query";
import { answer, api, type Shape } from "../api/client";
import { hasEnded, type Tone } from "../lib/states";
import { Notice, Tag, Wrong } from "../ui/parts";
import { Told } from "./told";
import { keyOfWhy } from "./use-run";

interface WhyProps {
  job: string;
  run: string;
  task?: string;
  state: string;
  reason: string | null;
  error?: Failed | null;
  /** Of a run, where its tasks can be opened. */
  onOpen?: (task: string) => void;
}

type Failed = Shape<"Failed">;

const AGAIN_MS = 5_000;

export function Why({ job, run, task = "", state, reason, error, onOpen }: WhyProps) {
  const isOpen = !hasEnded(state);
  // What is said of a cancelled run is said with its state.
  const isAsked = isOpen || (state !== "succeeded" && (task !== "" || state !== "cancelled"));
  const found = useQuery({
    queryKey: [...keyOfWhy(job, run, task), state, reason],
    queryFn: () => (task ? whyTask(job, run, task) : whyRun(job, run)),
    enabled: isAsked,
    refetchInterval: isOpen ? AGAIN_MS : false,
    placeholderData: (before) => before,
  });
  const why = found.data;
  if (!isAsked) return null;
  if (error && !isOpen) return <Failure error={error} why={why} onOpen={onOpen} />;
  if (!why) return found.error ? <Wrong error={found.error} again={() => void found.refetch()} /> : null;
  const title = titleOf(state, why);
  if (title === null) {
    // How far a run is, is seen; who works on a task is not.
    return task && isOpen ? (
      <p className="soft">
        <Told text={why.summary} />
      </p>
    ) : null;
  }
  return (
    <Notice tone={toneOf(state)}>
      <strong>{title}</strong>
      <p>
        <Told text={why.summary} />
      </p>
      <Blockers why={why} said={why.summary} onOpen={onOpen} />
      {error && !why.summary.includes(error.message) && <p className="mono failure">{error.message}</p>}
    </Notice>
  );
}

interface SaidProps {
  why: Shape<"Why"> | undefined;
  onOpen?: (task: string) => void;
}

function Failure({ error, why, onOpen }: SaidProps & { error: Failed }) {
  return (
    <Notice tone="bad">
      <strong>{error.error}</strong>
      <p className="mono failure">{error.message}</p>
      <Blockers why={why} said={error.message} onOpen={onOpen} />
    </Notice>
  );
}

function Blockers({ why, said, onOpen }: SaidProps & { said: string }) {
  if (!why?.blockers.length) return null;
  return (
    <ul className="why-blockers">
      {why.blockers.map((one) => (
        <li key={`${one.code} ${one.detail}`}>
          <Tag>{one.code}</Tag>
          {!said.includes(one.detail) && <Detail text={one.detail} onOpen={onOpen} />}
          <span className="soft">{one.remedy}</span>
        </li>
      ))}
    </ul>
  );
}

/** The tasks that are named, as the way to them: `task gate: …` and `failed: load, check`. */
function Detail({ text, onOpen }: { text: string; onOpen?: (task: string) => void }) {
  const [, before = "", names = "", rest = ""] = /^(task |failed: )([^:]+?)(:.*)?$/s.exec(text) ?? [];
  if (!onOpen || !names) {
    return (
      <span>
        <Told text={text} />
      </span>
    );
  }
  return (
    <span>
      {before}
      {names.split(", ").map((name, number) => (
        <span key={name}>
          {number > 0 && ", "}
          <button type="button" className="as-link" onClick={() => onOpen(name)}>
            {name}
          </button>
        </span>
      ))}
      <Told text={rest} />
    </span>
  );
}

function titleOf(state: string, why: Shape<"Why">): string | null {
  if (state === "running") return why.blockers.length ? "What stands in its way" : null;
  if (why.blockers[0]?.code === "approval") return "It waits for somebody's word";
  if (!hasEnded(state)) return "Why is it not running?";
  return why.blockers.length ? "What can be done about it" : null;
}

function toneOf(state: string): Tone {
  if (state === "failed" || state === "upstream_failed") return "bad";
  return hasEnded(state) ? "muted" : "warn";
}

function whyRun(job: string, run: string) {
  return answer(api.GET("/jobs/{job}/runs/{run}/why", { params: { path: { job, run } } }));
}

function whyTask(job: string, run: string, task: string) {
  return answer(api.GET("/jobs/{job}/runs/{run}/tasks/{task}/why", { params: { path: { job, run, task } } }));
}
