/** Which runs are listed: chosen here, and kept in the address. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useMemo, useState } from "react";
import { of } from "../api/cache";
import { answer, api } from "../api/client";
import { useQueryPart, useSettled } from "../lib/hooks";
import { lookOf, RUN_STATES } from "../lib/states";
import { SelectField, TextField } from "../ui/form";
import type { Asked } from "./list";

const HOUR_MS = 3_600_000;
const LAST: Readonly<Record<string, { label: string; ms: number }>> = {
  "1h": { label: "Last hour", ms: HOUR_MS },
  "24h": { label: "Last 24 hours", ms: 24 * HOUR_MS },
  "7d": { label: "Last 7 days", ms: 7 * 24 * HOUR_MS },
  "30d": { label: "Last 30 days", ms: 30 * 24 * HOUR_MS },
};
const USUAL = "24h";
const CUSTOM = "custom";

export interface Filters {
  asked: Asked;
  /** Such as "in the last 24 hours", for a sentence. */
  when: string;
  fields: React.ReactNode;
  isNarrowed: boolean;
}

export function useFilters(): Filters {
  const [state, setState] = useQueryPart("state");
  const [job, setJob] = useQueryPart("job");
  const [tag, setTag] = useQueryPart("tag");
  const [last, setLast] = useQueryPart("last", USUAL);
  const [from, setFrom] = useQueryPart("from");
  const [to, setTo] = useQueryPart("to");
  const isCustom = last === CUSTOM || from !== "" || to !== "";
  const asked = useMemo<Asked>(() => {
    const since = isCustom ? from : sinceOf(last);
    return { state, job, tag, from: since, to: isCustom ? to : "" };
  }, [state, job, tag, last, from, to, isCustom]);
  const choose = (value: string) => {
    setLast(value);
    setTo("");
    setFrom(value === CUSTOM ? sinceOf(last) : "");
  };
  const fields = (
    <div className="run-filters">
      <SelectField
        label="State"
        value={state}
        choices={[
          { value: "", label: "Any state" },
          ...RUN_STATES.map((one) => ({ value: one, label: lookOf(one).label })),
        ]}
        onChange={(event) => setState(event.target.value)}
      />
      <SelectField
        label="Fire time"
        value={isCustom ? CUSTOM : last}
        choices={[
          ...Object.entries(LAST).map(([value, { label }]) => ({ value, label })),
          { value: CUSTOM, label: "From … to …" },
        ]}
        onChange={(event) => choose(event.target.value)}
      />
      {isCustom && (
        <>
          <When label="From" value={from} onChange={setFrom} />
          <When label="To" value={to} onChange={setTo} />
        </>
      )}
      <JobField value={job} onChange={setJob} />
      <Typed label="Tag" value={tag} onChange={setTag} />
    </div>
  );
  const when = isCustom ? "in that time" : `in the ${(LAST[last]?.label ?? "last 24 hours").toLowerCase()}`;
  return { asked, when, fields, isNarrowed: Boolean(state || job || tag) };
}

/** To the minute, so that the same list keeps its place. */
function sinceOf(last: string): string {
  const { ms } = LAST[last] ?? { ms: 24 * HOUR_MS };
  const at = Date.now() - ms;
  return new Date(at - (at % 60_000)).toISOString();
}

function When({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <TextField
      label={label}
      type="datetime-local"
      value={value && local(value)}
      onChange={(event) => onChange(event.target.value ? new Date(event.target.value).toISOString() : "")}
    />
  );
}

/** As the field wants it: in the user's zone, to the minute. */
function local(at: string): string {
  const then = new Date(at);
  if (Number.isNaN(then.getTime())) return "";
  return new Date(then.getTime() - then.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

interface TypedProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  list?: string;
  onType?: (value: string) => void;
}

/** Asks only once somebody has stopped typing. */
function Typed({ label, value, onChange, list, onType }: TypedProps) {
  const [text, setText] = useState(value);
  const settled = useSettled(text.trim(), 450);
  useEffect(() => setText(value), [value]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what was typed is passed on
  useEffect(() => {
    if (settled !== value && settled === text.trim()) onChange(settled);
  }, [settled]);
  return (
    <TextField
      label={label}
      value={text}
      list={list}
      placeholder="Any"
      onChange={(event) => {
        setText(event.target.value);
        onType?.(event.target.value);
      }}
    />
  );
}

function JobField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const id = useId();
  const [typed, setTyped] = useState("");
  const prefix = useSettled(typed.trim(), 200);
  const found = useQuery({
    queryKey: [...of.jobs, "names", prefix],
    queryFn: async () =>
      (await answer(api.GET("/jobs", { params: { query: { prefix, limit: 20 } } }))).items.map(({ name }) => name),
    enabled: prefix !== "",
    staleTime: 60_000,
  });
  return (
    <>
      <Typed label="Job" value={value} onChange={onChange} list={id} onType={setTyped} />
      <datalist id={id}>
        {(found.data ?? []).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}
