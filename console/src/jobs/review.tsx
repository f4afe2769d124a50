/** The last look before a definition comes into force: what changes, in words and in the text. */

import { useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import type { Shape } from "../api/client";
import type { OwnNamespace } from "../api/namespace";
import { ApiError } from "../api/problem";
import { Actor } from "../ui/actor";
import { Dialog } from "../ui/dialog";
import { Button, Loading, Moment, Notice, Wrong } from "../ui/parts";
import { Changes, Diff } from "./diff";
import type { Written } from "./document";
import { type Conflict, merged } from "./merge";
import type { Planned } from "./plan";
import { type Newer, save } from "./saving";
import type { Base } from "./start";
import { asWritten } from "./value";

interface ReviewProps {
  job: string | null;
  written: Written;
  base: Base | null;
  planned: Planned;
  namespace: OwnNamespace;
  onClose: () => void;
  onSaved: (job: Shape<"Job">) => void;
  /** Go on from what somebody else saved, with this text. */
  goOn: (base: Base, written: Written, conflicts: readonly Conflict[]) => void;
}

export function Review(props: ReviewProps) {
  const { job, written, base, planned, namespace, onClose, onSaved } = props;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [newer, setNewer] = useState<Newer | null>(null);
  const name = job ?? String(written.value?.name ?? "");
  const attempt = JSON.stringify([written.value, base?.version]);
  const key = useMemo(() => attempt && crypto.randomUUID(), [attempt]);
  const { difference, problems, isCurrent, failure } = planned;
  const isSame = difference?.action === "none" && isCurrent;
  const isReady = problems.length === 0 && written.value !== null && (isCurrent || Boolean(failure)) && !isSame;
  const isUnderWay = useRef(false);
  const go = async () => {
    if (!isReady || isUnderWay.current || !written.value) return;
    isUnderWay.current = true;
    setBusy(true);
    setError(null);
    try {
      const saved = await save({ job, base, definition: written.value, key, namespace });
      if ("job" in saved) onSaved(saved.job);
      else setNewer(saved.newer);
    } catch (caught) {
      setError(caught);
    } finally {
      isUnderWay.current = false;
      setBusy(false);
    }
  };
  if (newer && base) return <SomebodyElse {...props} base={base} newer={newer} />;
  return (
    <Dialog
      title={job ? `Save ${name}` : `Create ${name}`}
      kind="wide"
      onClose={onClose}
      onSubmit={() => void go()}
      foot={
        <>
          <Button onClick={onClose}>Go on writing</Button>
          <Button type="submit" kind="primary" icon="check" busy={busy} disabled={!isReady}>
            {job === null
              ? "Create the job"
              : base?.version
                ? `Save as version ${base.version + 1}`
                : "Create it again"}
          </Button>
        </>
      }
    >
      {problems.length > 0 && (
        <Notice tone="bad">
          <strong>Something has to be corrected first.</strong>
          <ul>
            {problems.map(({ path, message }) => (
              <li key={`${path} ${message}`}>
                {path && <span className="mono">{path}: </span>}
                {message}
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {!isCurrent && !failure && <Loading lines={2} />}
      {isSame && <p>Nothing would change: it says the same as version {difference.version}.</p>}
      {isCurrent && difference && !isSame && problems.length === 0 && (
        <Changes summary={difference.summary} label="What changes" />
      )}
      {job === null && isCurrent && planned.plan?.fires[0] && (
        <p className="soft">
          Its first fire: <Moment at={planned.plan.fires[0].fireAt} />
        </p>
      )}
      {base?.version && <Diff before={base.text} after={written.text} label="What changes in the text" />}
      {error !== null && <Wrong error={error} />}
      {error instanceof ApiError && error.status === 409 && job === null && (
        <p>
          Give it another name, or <Link href={`/jobs/${name}/edit`}>edit the job that has this one</Link>.
        </p>
      )}
    </Dialog>
  );
}

/** Somebody saved meanwhile: what they did, and how to go on with both. */
function SomebodyElse({ job, written, base, newer, goOn, onClose }: ReviewProps & { base: Base; newer: Newer }) {
  const isGone = newer.base.version === null;
  const both = useMemo(
    () => (isGone ? { written, conflicts: [] } : merged(written, base.definition, newer.base.definition)),
    [isGone, written, base, newer],
  );
  return (
    <Dialog
      title={
        isGone ? `Somebody deleted ${job} meanwhile` : `Somebody else saved version ${newer.base.version} meanwhile`
      }
      kind="wide"
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Go on writing</Button>
          {!isGone && <Button onClick={() => goOn(newer.base, written, [])}>Keep my text as it is</Button>}
          <Button kind="primary" onClick={() => goOn(newer.base, both.written, both.conflicts)}>
            {isGone ? "Create it again with my text" : `Put my changes on top of version ${newer.base.version}`}
          </Button>
        </>
      }
    >
      <p>Nothing of yours is lost, and nothing was saved yet.</p>
      <ol className="stack">
        {newer.versions.map((version) => (
          <li key={version.version} className="stack">
            <span className="soft">
              Version {version.version}, <Moment at={version.createdAt} />, by <Actor id={version.createdBy} />
            </span>
            <Changes summary={version.summary} label={`What version ${version.version} changed`} />
          </li>
        ))}
      </ol>
      {!isGone && (
        <>
          <h3>What they changed since version {base.version}</h3>
          <Diff before={base.text} after={newer.base.text} label="What somebody else changed" />
          {both.conflicts.length > 0 && <Conflicts conflicts={both.conflicts} />}
          <p className="soft">
            With your changes on top of theirs you see what differs from version {newer.base.version} before you save.
            If you keep your text as it is, saving it takes theirs back.
          </p>
        </>
      )}
    </Dialog>
  );
}

export function Conflicts({ conflicts }: { conflicts: readonly Conflict[] }) {
  return (
    <Notice tone="warn">
      <strong>Both of you changed the same. Yours is kept:</strong>
      <ul>
        {conflicts.map(({ path, mine, theirs }) => (
          <li key={path}>
            <span className="mono">{path}</span>: yours is {shown(mine)}, theirs {shown(theirs)}
          </li>
        ))}
      </ul>
    </Notice>
  );
}

function shown(value: unknown): string {
  if (value === undefined) return "not there";
  const text = asWritten(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
