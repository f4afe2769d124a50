/** The files that a run's attempts left behind. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { problemOf } from "../api/problem";
import { session } from "../api/session";
import { offerBlob } from "../lib/download";
import { Button, Found } from "../ui/parts";
import { sayWrong } from "../ui/toasts";
import { plain } from "./log/plain";
import { sized } from "./words";

type Artifact = Shape<"ArtifactOfRun">;

interface ArtifactsProps {
  job: string;
  run: string;
  task: string;
  /** While the task goes on, more may come. */
  isOpen: boolean;
}

export function Artifacts({ job, run, task, isOpen }: ArtifactsProps) {
  const found = useQuery({
    queryKey: [...of.run(job, run), "artifacts", task, isOpen],
    queryFn: () =>
      answer(api.GET("/jobs/{job}/runs/{run}/artifacts", { params: { path: { job, run }, query: { task } } })),
  });
  return (
    <Found query={found} lines={2}>
      {({ items }) =>
        items.length === 0 ? (
          <p className="soft">
            It left no files{isOpen ? " so far" : ""}. A task keeps what it writes to the folder{" "}
            <code>$SWEEPHAND_ARTIFACTS</code>.
          </p>
        ) : (
          <ul className="files">
            {items.map((one) => (
              <File
                key={`${one.attempt}/${one.name}`}
                file={one}
                several={items.some((other) => other.attempt !== one.attempt)}
              />
            ))}
          </ul>
        )
      }
    </Found>
  );
}

function File({ file, several }: { file: Artifact; several: boolean }) {
  const [busy, setBusy] = useState(false);
  const name = plain(file.name);
  const fetchIt = async () => {
    setBusy(true);
    await download(file).catch(sayWrong);
    setBusy(false);
  };
  return (
    <li className="row">
      <span className="grow cut mono" title={name}>
        {name}
      </span>
      {several && <span className="faint">attempt {file.attempt}</span>}
      <span className="soft number">{sized(file.size)}</span>
      <Button small icon="download" busy={busy} aria-label={`Download ${name}`} onClick={() => void fetchIt()} />
    </li>
  );
}

/** A path of the server wants the token; an address elsewhere is signed, and must not be given it. */
async function download(file: Artifact): Promise<void> {
  const name = file.name.split("/").at(-1) ?? "file";
  if (!file.url.startsWith("/") || file.url.startsWith("//")) {
    const url = new URL(file.url);
    if (url.protocol !== "https:") throw new Error(`The address of ${name} is none that can be fetched from here.`);
    location.assign(url); // it is answered as a download, so that this page stays
    return;
  }
  const signedIn = session.get();
  const headers: HeadersInit = signedIn
    ? { Authorization: `Bearer ${signedIn.token}`, "X-Namespace": signedIn.namespace }
    : {};
  const response = await fetch(file.url, { headers });
  if (!response.ok) throw problemOf(response.status, await response.json().catch(() => null));
  offerBlob(name, new Blob([await response.arrayBuffer()], { type: "application/octet-stream" }));
}
