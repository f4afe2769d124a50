/** Datasets and scanned files: what the scheduler knows of them. */

import { Link } from "wouter";
import { of } from "../api/cache";
import { answer, api } from "../api/client";
import { useMay } from "../lib/roles";
import { usePages } from "../ui/pages";
import { Button, Empty, Found, Moment, Sheet, StatePill } from "../ui/parts";
import { doing } from "../ui/toasts";
import { KINDS } from "./kinds";

export function Datasets() {
  const may = useMay("operator");
  const { query, items, more, fetchMore } = usePages([...of.admin, "datasets"], (cursor) =>
    answer(api.GET("/datasets", { params: { query: { limit: 100, cursor } } })),
  );
  const update = (dataset: string) =>
    doing(`${dataset} was updated: its subscribers run.`, async () => {
      await answer(
        api.POST("/datasets/{dataset}/updates", { params: { path: { dataset } }, body: { id: crypto.randomUUID() } }),
      );
      await query.refetch();
    });
  return (
    <Sheet title="Datasets" flush>
      <Found query={query}>
        {() =>
          items.length === 0 ? (
            <Empty title="No datasets">
              <p>{KINDS.datasets.below} A task names what it makes under `publishes`.</p>
            </Empty>
          ) : (
            <div className="scroll-x">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Dataset</th>
                    <th scope="col">Published by</th>
                    <th scope="col">Runs</th>
                    <th scope="col">Updated</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((one) => (
                    <tr key={one.id}>
                      <td>{one.id}</td>
                      <td>
                        <Names jobs={one.publishers.map((by) => by.jobId)} />
                      </td>
                      <td>
                        <Names jobs={one.subscribers.map((by) => by.jobId)} />
                      </td>
                      <td>
                        <div className="row wrap">
                          <Moment at={one.updatedAt} relative />
                          {may && (
                            <Button small onClick={() => void update(one.id)} aria-label={`Update ${one.id}`}>
                              Update
                            </Button>
                          )}
                        </div>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {more && <Button onClick={fetchMore}>Show more</Button>}
            </div>
          )
        }
      </Found>
    </Sheet>
  );
}

function Names({ jobs }: { jobs: readonly string[] }) {
  if (jobs.length === 0) return <span className="faint">nobody</span>;
  return (
    <ul>
      {[...new Set(jobs)].map((job) => (
        <li key={job}>
          <Link href={`/jobs/${job}`}>{job}</Link>
        </li>
      ))}
    </ul>
  );
}

export function Files() {
  const { query, items, more, fetchMore } = usePages([...of.admin, "files"], (cursor) =>
    answer(api.GET("/files", { params: { query: { limit: 100, cursor } } })),
  );
  return (
    <Sheet title="Job files" flush>
      <Found query={query}>
        {() =>
          items.length === 0 ? (
            <Empty title="No files are scanned">
              <p>
                Start with <code>sweephand up --jobs DIR</code>, or on AWS put files into the bucket, and they are
                applied as they change.
              </p>
            </Empty>
          ) : (
            <div className="scroll-x">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">File</th>
                    <th scope="col">State</th>
                    <th scope="col">Jobs</th>
                    <th scope="col">Scanned</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((file) => (
                    <tr key={file.path}>
                      <td>{file.path}</td>
                      <td>
                        <StatePill state={file.status} />
                        {(file.errors as { path?: string; message?: string }[]).map((error) => (
                          <div key={`${error.path}${error.message}`} className="soft">
                            {error.path && <code>{error.path}</code>} {error.message}
                          </div>
                        ))}
                      </td>
                      <td>
                        <Names jobs={file.jobs.map((job) => job.jobId)} />
                      </td>
                      <td>
                        <Moment at={file.scannedAt} relative />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {more && <Button onClick={fetchMore}>Show more</Button>}
            </div>
          )
        }
      </Found>
    </Sheet>
  );
}
