/** A job's versions: who made each and when, what it changed, and a way back. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { useNamespace } from "../api/namespace";
import { ApiError } from "../api/problem";
import { useMay } from "../lib/roles";
import { Actor } from "../ui/actor";
import { Confirm } from "../ui/dialog";
import { Button, Found, Moment, Notice, Sheet } from "../ui/parts";
import { say } from "../ui/toasts";
import { refreshJob } from "./actions";
import { Changes, Diff } from "./diff";
import "../style/jobs.css";

type Version = Shape<"Version">;
const PAGE = 30;

export function Versions({ job }: { job: string }) {
  const { name, headers } = useNamespace();
  const mayEdit = useMay("editor");
  const [chosen, setChosen] = useState<readonly number[]>([]);
  const [back, setBack] = useState<Version | null>(null);
  const query = useInfiniteQuery({
    queryKey: [...of.job(job), "versions", name],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/jobs/{job}/versions", {
          params: { path: { job }, query: { limit: PAGE, ...(pageParam && { cursor: pageParam }) } },
          headers,
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.nextCursor,
    staleTime: 30_000,
  });
  const versions = query.data?.pages.flatMap((page) => page.items) ?? [];
  const newest = versions[0];
  const choose = (version: number) =>
    setChosen(chosen.includes(version) ? chosen.filter((one) => one !== version) : [...chosen, version].slice(-2));
  const [older, newer] = [...chosen]
    .sort((a, b) => a - b)
    .map((number) => versions.find((one) => one.version === number));
  return (
    <Found query={query}>
      {() => (
        <div className="stack versions">
          {older && newer ? (
            <Sheet
              title={`Version ${older.version} → ${newer.version}`}
              actions={
                <Button small onClick={() => setChosen([])}>
                  Close
                </Button>
              }
            >
              <Between older={older} newer={newer} />
            </Sheet>
          ) : (
            versions.length > 1 && <p className="soft">Choose two versions to see what is different between them.</p>
          )}
          <Sheet label="Versions" flush>
            <ol>
              {versions.map((version) => (
                <li key={version.version} className="version">
                  <label className="check at-top">
                    <input
                      type="checkbox"
                      aria-label={`Compare version ${version.version}`}
                      checked={chosen.includes(version.version)}
                      onChange={() => choose(version.version)}
                    />
                    <strong>Version {version.version}</strong>
                  </label>
                  <div className="stack grow">
                    <span className="soft">
                      <Moment at={version.createdAt} /> by <Actor id={version.createdBy} />
                      {version === newest && " · in force"}
                    </span>
                    <Changes summary={version.summary} label={`What version ${version.version} changed`} />
                  </div>
                  {mayEdit && version !== newest && version.definition && newest?.definition && (
                    <Button small icon="backfill" onClick={() => setBack(version)}>
                      Go back to it
                    </Button>
                  )}
                </li>
              ))}
            </ol>
          </Sheet>
          {query.hasNextPage && (
            <div>
              <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                Older versions
              </Button>
            </div>
          )}
          {back && newest && <GoBack job={job} to={back} from={newest} onClose={() => setBack(null)} />}
        </div>
      )}
    </Found>
  );
}

/** Written out as YAML, which is easier to read than JSON. */
function Between({ older, newer }: { older: Version; newer: Version }) {
  const before = useYaml(older.definition);
  const after = useYaml(newer.definition);
  if (before === null || after === null) return null;
  return (
    <Diff
      before={before}
      after={after}
      label={`What is different between version ${older.version} and version ${newer.version}`}
    />
  );
}

function useYaml(definition: Version["definition"]): string | null {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    let isHere = true;
    void import("./document").then(({ written }) => {
      if (isHere) setText(definition ? written(definition) : "");
    });
    return () => {
      isHere = false;
    };
  }, [definition]);
  return text;
}

function GoBack({ job, to, from, onClose }: { job: string; to: Version; from: Version; onClose: () => void }) {
  const { name, headers } = useNamespace();
  const plan = useQuery({
    queryKey: ["plan", name, job, to.version, from.version],
    queryFn: ({ signal }) =>
      answer(api.POST("/plan", { body: { ...to.definition, name: job } as never, headers, signal })),
    retry: false,
    gcTime: 0,
  });
  const summary = plan.data?.difference.summary;
  const run = async () => {
    try {
      const now = await answer(
        api.POST("/jobs/{job}/rollback", {
          params: { path: { job } },
          headers: { ...headers, "If-Match": String(from.version) },
          body: { version: to.version },
        }),
      );
      refreshJob(job);
      say(`${job} is back to version ${to.version}: it is version ${now.version} now.`);
    } catch (error) {
      refreshJob(job);
      if (error instanceof ApiError && error.status === 412) {
        throw new Error("Somebody saved another version meanwhile: close this, look at it, and then go back.");
      }
      throw error;
    }
  };
  return (
    <Confirm
      title={`Go back to version ${to.version}`}
      does={`Go back to version ${to.version}`}
      run={run}
      onClose={onClose}
    >
      <p className="soft">
        What version {to.version} says comes into force again, as version {from.version + 1}. Runs that have started go
        on as they began.
      </p>
      {Array.isArray(summary) && <Changes summary={summary as string[]} label="What that changes" />}
      {plan.error instanceof ApiError && plan.error.status === 400 && (
        <Notice tone="warn">
          <span>As things are now it is refused: {plan.error.message}</span>
        </Notice>
      )}
    </Confirm>
  );
}
