/** The definition in force, as it would stand in a file. */

import { useMemo } from "react";
import { stringify } from "yaml";
import type { Shape } from "../api/client";
import { offerFile } from "../lib/download";
import { Button, Copy, Sheet } from "../ui/parts";

const SAID_BY_THE_SERVER = new Set([
  "jobId",
  "version",
  "status",
  "createdAt",
  "createdBy",
  "updatedAt",
  "nextFireAt",
  "lastRun",
  "startedAt",
  "progress",
  "recentRuns",
  "costPerMonth",
]);

export function definitionOf(job: Shape<"Job">): Record<string, unknown> {
  return Object.fromEntries(Object.entries(job).filter(([field]) => !SAID_BY_THE_SERVER.has(field)));
}

export function Definition({ job }: { job: Shape<"Job"> }) {
  const text = useMemo(() => stringify(definitionOf(job), { lineWidth: 100 }), [job]);
  return (
    <Sheet
      title={`Definition, version ${job.version}`}
      flush
      actions={
        <div className="row">
          <Copy text={text} what="the definition" />
          <Button small icon="download" onClick={() => offerFile(`${job.jobId}.yaml`, text, "application/yaml")}>
            YAML
          </Button>
        </div>
      }
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so that keys must reach it */}
      <pre className="definition" tabIndex={0}>
        {text}
      </pre>
    </Sheet>
  );
}
