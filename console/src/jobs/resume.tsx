/** Letting a schedule go on; before that, what each way to make up for the pause would run. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Shape } from "../api/client";
import { useNamespace } from "../api/namespace";
import { Confirm } from "../ui/dialog";
import { Found, Moment } from "../ui/parts";
import { say } from "../ui/toasts";
import type { DialogProps } from "./actions";

type Catchup = Shape<"ResumeBody">["catchup"];

const CHOICES: readonly { value: Catchup; label: string; says: string }[] = [
  { value: "none", label: "None of them", says: "Only fires to come run." },
  { value: "latest", label: "The latest", says: "One run makes up for the pause." },
  { value: "all", label: "All of them", says: "Each fire that was held runs, up to the job's bound." },
];
const SHOWN = 6;

export default function ResumeDialog({ job, onClose, onDone }: DialogProps) {
  const { name, headers } = useNamespace();
  const [catchup, setCatchup] = useState<Catchup>("none");
  const resume = (dryRun: boolean) =>
    answer(
      api.POST("/jobs/{job}/resume", { params: { path: { job: job.jobId } }, headers, body: { catchup, dryRun } }),
    );
  const foreseen = useQuery({
    queryKey: ["resume", name, job.jobId, catchup],
    queryFn: () => resume(true),
    gcTime: 0,
  });
  const run = async () => {
    const { fires } = await resume(false);
    say(`${job.jobId} goes on.${fires.length ? ` It makes up for ${counted(fires.length)}.` : ""}`);
    onDone("resume");
  };
  return (
    <Confirm title={`Resume ${job.jobId}`} does="Resume" run={run} onClose={onClose}>
      <fieldset className="parts">
        <legend>Which of the fires that the pause held shall run?</legend>
        {CHOICES.map(({ value, label, says }) => (
          <label key={value} className="check at-top">
            <input type="radio" name="catchup" checked={catchup === value} onChange={() => setCatchup(value)} />
            <span>
              {label} <span className="faint">{says}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <section aria-live="polite" className="foreseen stack">
        <Found query={foreseen} lines={2}>
          {(resumed) => <Foreseen resumed={resumed} />}
        </Found>
      </section>
    </Confirm>
  );
}

function Foreseen({ resumed }: { resumed: Shape<"Resumed"> }) {
  const { fires } = resumed;
  const dropped = resumed.dropped as { from: string; to: string; count: number; reason: string }[];
  if (resumed.status !== "paused") return <p>It was resumed meanwhile: its schedule goes on already.</p>;
  return (
    <>
      <p>
        <strong>{fires.length ? `It would run ${counted(fires.length)}:` : "It would run none."}</strong>
      </p>
      {fires.length > 0 && (
        <ul className="fires">
          {fires.slice(0, SHOWN).map((fire) => (
            <li key={fire}>
              <Moment at={fire} />
            </li>
          ))}
          {fires.length > SHOWN && <li className="faint">and {fires.length - SHOWN} more</li>}
        </ul>
      )}
      {dropped.map((stretch) => (
        <p key={stretch.from} className="soft">
          {counted(stretch.count)} would be skipped, <Moment at={stretch.from} />
          {stretch.count > 1 && (
            <>
              {" "}
              to <Moment at={stretch.to} />
            </>
          )}
          : {stretch.reason}.
        </p>
      ))}
    </>
  );
}

function counted(fires: number): string {
  return `${fires} ${fires === 1 ? "fire" : "fires"}`;
}
