/** All jobs of the namespace: what they are up to, what comes next, and how the last runs went. */

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useTopic } from "../api/live";
import { useSession } from "../api/session";
import { type JobAction, JobDialog, useJobMay } from "../jobs/actions";
import { JobRow } from "../jobs/list-row";
import { type ListedJob, useListing } from "../jobs/listing";
import { useMedia, useQueryPart, useSettled, useTitle } from "../lib/hooks";
import { useMay } from "../lib/roles";
import { Button, Empty, Found, LinkButton, PageHead, SearchBox } from "../ui/parts";
import { Rows } from "../ui/rows";
import "../style/jobs.css";

const STATUSES = [
  ["", "Any status"],
  ["active", "Active"],
  ["running", "Running"],
  ["paused", "Paused"],
  ["deleted", "Deleted"],
] as const;

export default function JobsPage() {
  useTitle("Jobs");
  useTopic("runs");
  const namespace = useSession()?.namespace ?? "";
  const [typed, setTyped, search] = useTyped("search");
  const [typedTag, setTypedTag, tag] = useTyped("tag");
  const [status, setStatus] = useQueryPart("status");
  const mayEdit = useMay("editor");
  const listing = useListing({ search: search.trim(), status, tag: tag.trim() }, namespace);
  const seenTags = useMemo(() => tagsOf(listing.jobs), [listing.jobs]);
  const isNarrowed = Boolean(search || status || tag);
  const isFirst = listing.query.data !== undefined && !isNarrowed && !listing.isPending && listing.jobs.length === 0;
  const clear = () => {
    setTyped("");
    setTypedTag("");
    setStatus("");
  };
  return (
    <>
      <PageHead title="Jobs">
        {mayEdit && !isFirst && (
          <LinkButton href="/jobs/new" kind="primary" icon="plus">
            New job
          </LinkButton>
        )}
      </PageHead>
      <div className="row wrap job-filters" hidden={isFirst}>
        <SearchBox label="Search jobs" value={typed} onChange={setTyped} />
        <select
          className="input"
          aria-label="Status"
          value={status}
          onChange={(event) => setStatus(event.target.value)}
        >
          {STATUSES.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <input
          className="input"
          type="search"
          aria-label="Tag"
          placeholder="Any tag"
          list="job-tags"
          autoComplete="off"
          value={typedTag}
          onChange={(event) => setTypedTag(event.target.value)}
        />
        <datalist id="job-tags">
          {seenTags.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
        {isNarrowed && (
          <Button kind="quiet" onClick={clear}>
            Show all
          </Button>
        )}
      </div>
      <Found query={listing.query} lines={8}>
        {() =>
          listing.jobs.length > 0 || listing.isPending ? (
            <List listing={listing} chooseTag={setTypedTag} />
          ) : isFirst ? (
            <FirstJob mayEdit={mayEdit} />
          ) : (
            <Empty title="No job fits">
              <p>No job of {namespace} has what is asked for here.</p>
              <Button onClick={clear}>Show all jobs</Button>
            </Empty>
          )
        }
      </Found>
    </>
  );
}

function List({ listing, chooseTag }: { listing: ReturnType<typeof useListing>; chooseTag: (tag: string) => void }) {
  const isNarrow = useMedia("(max-width: 820px)");
  const may = useJobMay();
  const [asked, setAsked] = useState<{ job: ListedJob; action: JobAction } | null>(null);
  const open = useCallback((job: ListedJob, action: JobAction) => setAsked({ job, action }), []);
  const choose = useRef(chooseTag);
  choose.current = chooseTag;
  const chooseOne = useCallback((tag: string) => choose.current(tag), []);
  return (
    <section className="sheet jobs" aria-busy={listing.isPending}>
      {!isNarrow && (
        <div className="job-row heads" aria-hidden="true">
          <span>Job</span>
          <span>Status</span>
          <span>Schedule</span>
          <span>Next fire</span>
          <span>Last runs</span>
          <span>Tags</span>
        </div>
      )}
      <Rows
        items={listing.jobs}
        height={isNarrow ? 76 : 52}
        label="Jobs"
        keyOf={keyOf}
        most={isNarrow ? "calc(100dvh - 270px)" : "calc(100dvh - 190px)"}
        more={listing.more}
        fetchMore={listing.fetchMore}
      >
        {(job) => <JobRow job={job} mayOf={may} inSight={listing.inSight} open={open} chooseTag={chooseOne} />}
      </Rows>
      {asked && (
        <JobDialog action={asked.action} job={asked.job} onClose={() => setAsked(null)} onDone={listing.refresh} />
      )}
    </section>
  );
}

function FirstJob({ mayEdit }: { mayEdit: boolean }) {
  return (
    <Empty title="No jobs yet">
      <p className="prose">
        A job says what to run and when: a command, a function or a call, at times, after other jobs, or when you
        trigger it. Sweephand keeps a record of every fire time, and of what became of it.
      </p>
      {mayEdit ? (
        <LinkButton href="/jobs/new" kind="primary" icon="plus">
          New job
        </LinkButton>
      ) : (
        <p>Somebody who may edit in this namespace can make the first one.</p>
      )}
    </Empty>
  );
}

function keyOf(job: ListedJob): string {
  return job.jobId;
}

function tagsOf(jobs: readonly ListedJob[]): string[] {
  return [...new Set(jobs.flatMap((job) => (Array.isArray(job.tags) ? job.tags.map(String) : [])))].sort();
}

/** What is being typed, and the part of the address that follows once the typing rests. */
function useTyped(name: string): [string, (text: string) => void, string] {
  const [asked, setAsked] = useQueryPart(name);
  const [typed, setTyped] = useState(asked);
  const settled = useSettled(typed);
  const own = useRef(asked);
  const set = useRef(setAsked);
  set.current = setAsked;
  useEffect(() => {
    own.current = settled;
    set.current(settled);
  }, [settled]);
  useEffect(() => {
    if (asked !== own.current) setTyped(asked);
  }, [asked]);
  return [typed, setTyped, asked];
}
