/** Running a job now, with other values for its parameters where somebody wants that. */

import { useMemo, useState } from "react";
import { answer, api } from "../api/client";
import { useNamespace } from "../api/namespace";
import { Dialog } from "../ui/dialog";
import { TextField } from "../ui/form";
import { Button, Wrong } from "../ui/parts";
import { say } from "../ui/toasts";
import type { DialogProps } from "./actions";
import { isObject } from "./definition";
import { asWritten, kindInWords, readValue } from "./value";

interface Row {
  id: number;
  name: string;
  text: string;
  isDeclared: boolean;
}

export default function TriggerDialog({ job, onClose, onDone }: DialogProps) {
  const { headers } = useNamespace();
  const declared = isObject(job.params) ? job.params : {};
  const [rows, setRows] = useState<readonly Row[]>(() =>
    Object.entries(declared).map(([name, value], id) => ({ id, name, text: asWritten(value), isDeclared: true })),
  );
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { params, wrong, isWhole } = paramsOf(rows, declared);
  const body = JSON.stringify({ params, ...(note.trim() ? { note: note.trim() } : {}) });
  // Pressing twice, or again after an answer was lost, makes one run; asking for something else makes another.
  const key = useMemo(() => `${body && crypto.randomUUID()}`, [body]);

  const change = (id: number, part: Partial<Row>) =>
    setRows(rows.map((row) => (row.id === id ? { ...row, ...part } : row)));
  const add = () =>
    setRows([...rows, { id: 1 + Math.max(-1, ...rows.map((row) => row.id)), name: "", text: "", isDeclared: false }]);
  const run = async () => {
    if (busy || !isWhole) return;
    setBusy(true);
    setError(null);
    try {
      const triggered = await answer(
        api.POST("/jobs/{job}/trigger", {
          params: { path: { job: job.jobId } },
          headers: { ...headers, "Idempotency-Key": key },
          body: JSON.parse(body),
        }),
      );
      say(`${job.jobId} was triggered.`);
      onClose();
      onDone("trigger", triggered.runId);
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Trigger ${job.jobId}`}
      onClose={onClose}
      onSubmit={() => void run()}
      foot={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button type="submit" kind="primary" icon="play" busy={busy} disabled={!isWhole}>
            Trigger
          </Button>
        </>
      }
    >
      <p className="soft">
        It runs now, whatever its schedule says.{job.status === "paused" ? " The job stays paused." : ""}
      </p>
      {rows.length > 0 && (
        <fieldset className="parts">
          <legend>Parameters of this run</legend>
          {rows.map((row) => (
            <ParamRow
              key={row.id}
              row={row}
              wrong={wrong.get(row.id)}
              change={(part) => change(row.id, part)}
              remove={() => setRows(rows.filter(({ id }) => id !== row.id))}
            />
          ))}
        </fieldset>
      )}
      <div>
        <Button small icon="plus" onClick={add}>
          Add a parameter
        </Button>
      </div>
      <TextField
        label="Note"
        value={note}
        maxLength={1_000}
        placeholder="why, for those who read the audit log"
        onChange={(event) => setNote(event.target.value)}
      />
      {error !== null && <Wrong error={error} />}
    </Dialog>
  );
}

function ParamRow(props: {
  row: Row;
  wrong: Wrongs | undefined;
  change: (part: Partial<Row>) => void;
  remove: () => void;
}) {
  const { row, wrong, change } = props;
  const read = readValue(row.text);
  const hint = "value" in read ? `Sent as ${kindInWords(read.value)}.` : undefined;
  if (row.isDeclared) {
    return (
      <TextField
        label={row.name}
        className="input mono"
        value={row.text}
        hint={row.text ? hint : undefined}
        wrong={wrong?.value}
        onChange={(event) => change({ text: event.target.value })}
      />
    );
  }
  return (
    <div className="pair">
      <TextField
        label="Name"
        className="input mono"
        value={row.name}
        wrong={wrong?.name}
        onChange={(event) => change({ name: event.target.value })}
      />
      <TextField
        label="Value"
        className="input mono"
        value={row.text}
        hint={row.text ? hint : undefined}
        wrong={wrong?.value}
        onChange={(event) => change({ text: event.target.value })}
      />
      <Button kind="quiet" icon="close" aria-label={`Remove ${row.name || "this parameter"}`} onClick={props.remove} />
    </div>
  );
}

interface Wrongs {
  name?: string;
  value?: string;
}

/** What differs from the job's own values, and which rows cannot be read. */
function paramsOf(rows: readonly Row[], declared: Record<string, unknown>) {
  const params: Record<string, unknown> = {};
  const wrong = new Map<number, Wrongs>();
  let isWhole = true;
  const seen = new Set<string>();
  for (const row of rows) {
    const read = readValue(row.text);
    const name = row.name.trim();
    if ("wrong" in read) wrong.set(row.id, { value: read.wrong });
    else if (seen.has(name)) wrong.set(row.id, { name: "There is a parameter of this name already." });
    else if (!name && row.text) wrong.set(row.id, { name: "A parameter has a name." });
    else if (!row.isDeclared || JSON.stringify(read.value) !== JSON.stringify(declared[name]))
      params[name] = read.value;
    isWhole &&= name !== "" && !wrong.has(row.id);
    seen.add(name);
  }
  return { params, wrong, isWhole };
}
