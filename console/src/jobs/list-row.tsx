/** A job in the list: one line on a screen, two on a phone. */

import { type MouseEvent, memo, useEffect } from "react";
import { Link, useLocation } from "wouter";
import { lookOf } from "../lib/states";
import { inFull } from "../lib/time";
import { jobPath, runPath } from "../run/link";
import { Menu } from "../ui/menu";
import { Moment, StatePill } from "../ui/parts";
import { type JobAction, type JobMay, jobItems } from "./actions";
import type { ListedJob } from "./listing";
import { scheduleInWords } from "./schedule-words";

export const SQUARES = 10;
const TAGS_SHOWN = 2;

interface JobRowProps {
  job: ListedJob;
  mayOf: (job: ListedJob) => JobMay;
  inSight: (job: string) => () => void;
  open: (job: ListedJob, action: JobAction) => void;
  chooseTag: (tag: string) => void;
}

export const JobRow = memo(function JobRow({ job, mayOf, inSight, open, chooseTag }: JobRowProps) {
  const [, go] = useLocation();
  useEffect(() => inSight(job.jobId), [inSight, job.jobId]);
  const words = scheduleInWords(job.schedule);
  const description = typeof job.description === "string" ? job.description : "";
  return (
    <div className="job-row">
      <div className="who">
        <Link href={jobPath(job.jobId)} className="cut" title={job.name}>
          {job.name}
        </Link>
        {description && (
          <span className="cut faint" title={description}>
            {description}
          </span>
        )}
      </div>
      <StatePill state={job.status} title={job.progress === null ? null : `${job.progress} % done`} />
      <span className={words ? "when cut" : "when cut faint"} title={words || undefined}>
        {words || "when triggered"}
      </span>
      <span className="next">
        <span className="visually-hidden">Next fire: </span>
        <Moment at={job.nextFireAt} relative />
      </span>
      <Squares job={job} go={go} />
      <Tags tags={job.tags} choose={chooseTag} />
      <Menu
        label={`More to do with ${job.name}`}
        items={jobItems(job, mayOf(job), (action) => open(job, action), go)}
      />
    </div>
  );
});

/** Ten links in each row: plain ones, since what links of the router do for each adds up while somebody scrolls. */
function Squares({ job, go }: { job: ListedJob; go: (to: string) => void }) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(event.currentTarget.getAttribute("href") ?? "");
  };
  const runs = [...(job.recentRuns ?? [])].slice(0, SQUARES).reverse();
  if (runs.length === 0) return <span className="squares faint">no runs yet</span>;
  return (
    <span className="squares">
      {Array.from({ length: SQUARES - runs.length }, (_, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: empty places that never move
        <span key={place} className="square none" />
      ))}
      {runs.map((run) => {
        const look = lookOf(run.state);
        const title = `${look.label}, ${inFull(run.fireAt)}`;
        return (
          <a
            key={run.runId}
            className="square"
            data-tone={look.tone}
            href={runPath(job.jobId, run.runId)}
            title={title}
            onClick={follow}
          >
            <span className="visually-hidden">{title}</span>
          </a>
        );
      })}
    </span>
  );
}

function Tags({ tags, choose }: { tags: unknown; choose: (tag: string) => void }) {
  const all = Array.isArray(tags) ? tags.map(String) : [];
  return (
    <span className="tags">
      {all.slice(0, TAGS_SHOWN).map((tag) => (
        <button key={tag} type="button" className="tag" title={`Jobs with the tag ${tag}`} onClick={() => choose(tag)}>
          {tag}
        </button>
      ))}
      {all.length > TAGS_SHOWN && (
        <span className="faint" title={all.slice(TAGS_SHOWN).join(", ")}>
          +{all.length - TAGS_SHOWN}
        </span>
      )}
    </span>
  );
}
