/** Why is it not running? What the server says about a run or a task, with what would help. */

import { useQuery } from "@tanstack/react-query";
import { answer, api, type Shape } from "../api/client";
import { hasEnded, type Tone } from "../lib/states";
import { inUtc } from "../lib/time";
import { Moment, Notice, Tag, Wrong } from "../ui/parts";
import { keyOfWhy } from "./use-run";

interface WhyProps {
  job: string;
  run: string;
  task?: string;
  state: string;
  reason: string | null;
  /** Of a run, where its tasks can be opened. */
  onOpen?: (task: string) => void;
}

const AGAIN_MS = 10_000;

export function Why({ job, run, task = "", state, reason, onOpen }: WhyProps) {
  const isOpen = !hasEnded(state);
  const isAsked = isOpen || state !== "succeeded";
  const found = useQuery({
    queryKey: [...keyOfWhy(job, run, task), state, reason],
    queryFn: () => (task ? whyTask(job, run, task) : whyRun(job, run)),
    enabled: isAsked,
    refetchInterval: isOpen ? AGAIN_MS : false,
    placeholderData: (before) => before,
  });
  if (!isAsked) return null;
  if (found.error) return <Wrong error={found.error} again={() => void found.refetch()} />;
  if (!found.data) return null;
  return <Said why={found.data} title={titleOf(state, found.data)} tone={toneOf(state)} onOpen={onOpen} />;
}

interface SaidProps {
  why: Shape<"Why">;
  title: string | null;
  tone: Tone;
  onOpen?: (task: string) => void;
}

function Said({ why, title, tone, onOpen }: SaidProps) {
  if (title === null) return hasEnded(why.status) ? null : <p className="soft">{why.summary}</p>;
  return (
    <Notice tone={tone}>
      <h3>{title}</h3>
      <p>{why.summary}</p>
      {why.blockers.length > 0 && (
        <ul className="why-blockers">
          {why.blockers.map((one) => (
            <li key={`${one.code} ${one.detail}`}>
              <Tag>{one.code}</Tag>
              {!why.summary.includes(one.detail) && <Detail text={one.detail} onOpen={onOpen} />}
              <span className="soft">{one.remedy}</span>
            </li>
          ))}
        </ul>
      )}
      {why.nextFireAt && (
        <p className="soft" title={inUtc(why.nextFireAt)}>
          The next fire is at <Moment at={why.nextFireAt} />.
        </p>
      )}
    </Notice>
  );
}

/** The tasks that are named, as the way to them: `task gate: …` and `failed: load, check`. */
function Detail({ text, onOpen }: { text: string; onOpen?: (task: string) => void }) {
  const [, before = "", names = "", rest = ""] = /^(task |failed: )([^:]+?)(:.*)?$/s.exec(text) ?? [];
  if (!onOpen || !names) return <span>{text}</span>;
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
      {rest}
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
