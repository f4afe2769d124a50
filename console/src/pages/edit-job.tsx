/** Writing a job: a new one, or the next version of one. */

import { useQuery } from "@tanstack/react-query";
import { useLocation, useParams, useSearch } from "wouter";
import { answer, api } from "../api/client";
import { type OwnNamespace, useNamespace } from "../api/namespace";
import { ApiError } from "../api/problem";
import { useSession } from "../api/session";
import { refreshJob } from "../jobs/actions";
import { Editor } from "../jobs/editor";
import { originOf, useStart } from "../jobs/start";
import { useTitle } from "../lib/hooks";
import { useMay, useWho } from "../lib/roles";
import { jobPath } from "../run/link";
import { SelectField } from "../ui/form";
import { Empty, Found, LinkButton, Loading, Notice, PageHead } from "../ui/parts";
import { say } from "../ui/toasts";
import "../style/jobs.css";

export default function EditJobPage() {
  const { job } = useParams<{ job?: string }>();
  const from = new URLSearchParams(useSearch()).get("from") ?? "";
  useTitle(job ? `Edit ${job}` : "New job");
  const who = useWho();
  const mayEdit = useMay("editor");
  if (!who.data && !who.error) return <Loading />;
  if (!mayEdit) {
    return (
      <Empty title="You may not change jobs here">
        <p>Whoever is an editor in this namespace may. Ask an admin for that role.</p>
        <LinkButton href={job ? jobPath(job) : "/jobs"}>{job ? `To ${job}` : "To the jobs"}</LinkButton>
      </Empty>
    );
  }
  return <Page key={`${job ?? ""}?${from}`} job={job ?? null} from={from} />;
}

function Page({ job, from }: { job: string | null; from: string }) {
  const [, go] = useLocation();
  const namespace = useNamespace();
  const chosen = useSession()?.namespace;
  const start = useStart(job, from, namespace);
  if (start.error instanceof ApiError && start.error.status === 404) {
    return (
      <Empty title={start.error.message.replace(/\.$/, "")}>
        <p>It may have been deleted, or be in another namespace.</p>
        <LinkButton href="/jobs">All jobs</LinkButton>
      </Empty>
    );
  }
  return (
    <>
      <PageHead
        title={job ? `Edit ${job}` : "New job"}
        crumbs={[{ label: "Jobs", href: "/jobs" }, ...(job ? [{ label: job, href: jobPath(job) }] : [])]}
      >
        {job === null && <Begin from={from} namespace={namespace} />}
      </PageHead>
      {chosen !== namespace.name && (
        <Notice tone="warn">
          <span>
            You have gone to the namespace {chosen}. What is written here belongs to {namespace.name}, and is saved
            there.
          </span>
        </Notice>
      )}
      <Found query={start} lines={10}>
        {(found) => (
          <Editor
            job={job}
            of={job ?? `new from ${from}`}
            start={found}
            namespace={namespace}
            onSaved={(saved) => {
              refreshJob(saved.jobId);
              say(job ? `Version ${saved.version} of ${saved.jobId} is in force.` : `${saved.jobId} is created.`);
              go(jobPath(saved.jobId));
            }}
          />
        )}
      </Found>
    </>
  );
}

/** A template to begin with, where there are some. */
function Begin({ from, namespace }: { from: string; namespace: OwnNamespace }) {
  const [, go] = useLocation();
  const templates = useQuery({
    queryKey: ["templates", namespace.name, "names"],
    queryFn: async () =>
      (await answer(api.GET("/templates", { params: { query: { limit: 200 } }, headers: namespace.headers }))).items,
    staleTime: 30_000,
  });
  const origin = originOf(from);
  const copied = origin.kind === "job" ? [{ value: from, label: `A copy of ${origin.name}` }] : [];
  const choices = (templates.data ?? []).map(({ id }) => ({ value: `template:${id}`, label: `Template: ${id}` }));
  if (choices.length + copied.length === 0) return null;
  return (
    <div className="begin">
      <SelectField
        label="Begin with"
        value={origin.kind === "either" ? "" : from}
        choices={[{ value: "", label: "Nothing" }, ...copied, ...choices]}
        onChange={(event) => go(event.target.value ? `/jobs/new?from=${event.target.value}` : "/jobs/new")}
      />
    </div>
  );
}
