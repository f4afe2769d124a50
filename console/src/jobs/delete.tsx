import { useState } from "react";
import { answer, api } from "../api/client";
import { useNamespace } from "../api/namespace";
import { Confirm } from "../ui/dialog";
import { CheckField } from "../ui/form";
import { say } from "../ui/toasts";
import type { DialogProps } from "./actions";

export default function DeleteDialog({ job, onClose, onDone }: DialogProps) {
  const { headers } = useNamespace();
  const [cancel, setCancel] = useState(false);
  const run = async () => {
    await answer(
      api.DELETE("/jobs/{job}", {
        params: { path: { job: job.jobId }, query: { cancel: cancel ? "true" : "false" } },
        headers,
      }),
    );
    say(`${job.jobId} is deleted.`);
    onDone("delete");
  };
  return (
    <Confirm title={`Delete ${job.jobId}`} does="Delete" danger typed={job.jobId} run={run} onClose={onClose}>
      <p className="soft">
        Nothing fires after it, and what is queued is skipped. Its history stays: runs, ledger and versions can still be
        looked at.
      </p>
      <CheckField label="Cancel its runs that have started" checked={cancel} onChange={setCancel} />
    </Confirm>
  );
}
