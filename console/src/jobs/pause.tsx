import { useState } from "react";
import { answer, api } from "../api/client";
import { useNamespace } from "../api/namespace";
import { Confirm } from "../ui/dialog";
import { TextField } from "../ui/form";
import { say } from "../ui/toasts";
import type { DialogProps } from "./actions";

export default function PauseDialog({ job, onClose, onDone }: DialogProps) {
  const { headers } = useNamespace();
  const [note, setNote] = useState("");
  const run = async () => {
    await answer(
      api.POST("/jobs/{job}/pause", {
        params: { path: { job: job.jobId } },
        headers,
        body: { note: note.trim() },
      }),
    );
    say(`${job.jobId} is paused.`);
    onDone("pause");
  };
  return (
    <Confirm title={`Pause ${job.jobId}`} does="Pause" run={run} onClose={onClose}>
      <p className="soft">
        Its schedule stops. Runs that have started go on, and one can still trigger it. When you resume it, you choose
        what becomes of the fires that the pause held.
      </p>
      <TextField
        label="Note"
        value={note}
        maxLength={1_000}
        placeholder="why, for those who read the audit log"
        onChange={(event) => setNote(event.target.value)}
      />
    </Confirm>
  );
}
