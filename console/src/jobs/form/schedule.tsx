/** When a job runs: one of a few kinds, each with its own fields. */

import { useQuery } from "@tanstack/react-query";
import { memo, useState } from "react";
import { answer, api } from "../../api/client";
import { zone } from "../../lib/time";
import { SelectField } from "../../ui/form";
import { Sheet } from "../../ui/parts";
import { isObject, type Path } from "../definition";
import { put, remove } from "../document";
import { scheduleInWords } from "../schedule-words";
import { useForm, useValue, useWrong } from "./context";
import { ChoiceOf, Field, Spelled } from "./field";
import { COMMA_WORDS, NUMBER_OR_TEXT, type Spelling, TEXT } from "./texts";

type Kind = "none" | "cron" | "every" | "at" | "after" | "datasets" | "events";
const KINDS: readonly (readonly [Kind, string])[] = [
  ["none", "Only when it is triggered"],
  ["cron", "At times (cron)"],
  ["every", "Every so often"],
  ["at", "Once"],
  ["after", "After other jobs"],
  ["datasets", "When datasets are updated"],
  ["events", "On events"],
];
const CLOCK = ["startAt", "endAt", "jitter", "calendar", "blackouts"];
const BEGINS: Readonly<Record<Exclude<Kind, "none">, () => unknown>> = {
  cron: () => "0 6 * * *",
  every: () => "5m",
  at: () => `${new Date(Date.now() + 86_400_000).toISOString().slice(0, 13)}:00:00Z`,
  after: () => [],
  datasets: () => [],
  events: () => [],
};
const zones = typeof Intl.supportedValuesOf === "function" ? ["UTC", ...Intl.supportedValuesOf("timeZone")] : ["UTC"];

function kindsOf(schedule: unknown): Kind[] {
  if (typeof schedule === "string") return ["cron"];
  if (!isObject(schedule)) return [];
  return KINDS.map(([kind]) => kind).filter((kind) => schedule[kind] !== undefined && schedule[kind] !== null);
}

export function ScheduleSection() {
  const { value, edit } = useForm();
  const schedule = value.schedule;
  const kinds = kindsOf(schedule);
  const kind = kinds.length > 1 ? "several" : (kinds[0] ?? "none");
  const wrong = useWrong(["schedule"], false);
  // What was filled in for another kind comes back with it.
  const [before] = useState(() => new Map<string, unknown>());
  const choose = (next: string) =>
    edit((doc) => {
      const [now] = kinds;
      if (now) before.set(now, schedule);
      if (next === "none") {
        remove(doc, ["schedule"]);
        return;
      }
      const kept = before.get(next);
      if (kept !== undefined) {
        put(doc, ["schedule"], kept);
        return;
      }
      const isClock = next === "cron" || next === "every" || next === "at";
      const shared = isObject(schedule) && isClock ? without(schedule, kinds) : {};
      const own = next === "cron" && !("timezone" in shared) ? { timezone: zone } : {};
      if (next !== "cron") delete shared.dst;
      put(doc, ["schedule"], { [next]: BEGINS[next as Exclude<Kind, "none">](), ...own, ...shared });
    });
  return (
    <Sheet title="When it runs">
      <div className="stack">
        <div className="grid">
          <SelectField
            label="Schedule"
            wrong={wrong}
            value={kind}
            choices={[
              ...(kind === "several" ? [{ value: "several", label: "Several of these" }] : []),
              ...KINDS.map(([one, label]) => ({ value: one, label })),
            ]}
            data-path="schedule"
            onChange={(event) => choose(event.target.value)}
          />
          {kinds.map((one) => (
            <KindFields key={one} kind={one} />
          ))}
        </div>
        {kinds.some((one) => one === "cron" || one === "every" || one === "at") && <ClockFields kinds={kinds} />}
      </div>
    </Sheet>
  );
}

function without(schedule: Record<string, unknown>, kinds: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schedule).filter(([name]) => !kinds.includes(name)));
}

function KindFields({ kind }: { kind: Kind }) {
  const { value, shapes } = useForm();
  const schedule = value.schedule;
  if (kind === "cron") {
    const path: Path = typeof schedule === "string" ? ["schedule"] : ["schedule", "cron"];
    return <Spelled path={path} spelling={KEPT} label="Cron expression" hint={hintFor(schedule)} isNeeded />;
  }
  if (kind === "every") return <Spelled path={["schedule", "every"]} spelling={NUMBER_OR_TEXT} isNeeded />;
  if (kind === "at") return <Spelled path={["schedule", "at"]} spelling={TEXT} isNeeded />;
  if (kind === "after") return <SeveralNames path={["schedule", "after"]} label="Jobs" what="have succeeded" />;
  if (kind === "datasets") return <SeveralNames path={["schedule", "datasets"]} label="Datasets" what="were updated" />;
  return (
    <div className="whole">
      <Field path={["schedule", "events"]} schema={shapes.named("EventRules")} isNeeded />
    </div>
  );
}

const KEPT: Spelling = { write: TEXT.write, read: (text) => ({ value: text }) };
const NAMES: Spelling = { write: COMMA_WORDS.write, read: (text) => withNone(COMMA_WORDS.read(text, undefined)) };

function withNone(said: ReturnType<Spelling["read"]>): ReturnType<Spelling["read"]> {
  return "value" in said ? { value: said.value ?? [] } : said;
}

function hintFor(schedule: unknown): string {
  const words = scheduleInWords(schedule);
  const expression = typeof schedule === "string" ? schedule : isObject(schedule) ? schedule.cron : "";
  return words.startsWith(String(expression)) || !words
    ? "Minute, hour, day, month, weekday; a sixth field before them is the second."
    : `That is ${words}.`;
}

/** Names of jobs or datasets, all or any of which count. */
function SeveralNames({ path, label, what }: { path: Path; label: string; what: string }) {
  const { change, headers } = useForm();
  const value = useValue(path);
  const given = isObject(value) ? value : null;
  const quantity = given?.any ? "any" : "all";
  const names = given ? given[quantity] : value;
  const others = given ? without(given, ["all", "any"]) : {};
  const list = useQuery({
    queryKey: ["names", headers["X-Namespace"], label],
    queryFn: async () =>
      label === "Jobs"
        ? (await answer(api.GET("/jobs", { params: { query: { limit: 200 } }, headers }))).items.map((job) => job.jobId)
        : (await answer(api.GET("/datasets", { params: { query: { limit: 200 } }, headers }))).items.map(
            (one) => one.id,
          ),
    staleTime: 60_000,
  });
  const id = `known-${label}`;
  return (
    <>
      <Spelled
        path={given ? [...path, quantity] : path}
        spelling={NAMES}
        label={label}
        hint="With commas between them."
        list={id}
        isNeeded
      />
      <datalist id={id}>
        {list.data?.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <SelectField
        label="It runs when"
        value={quantity}
        choices={[
          { value: "all", label: `all of them ${what}` },
          { value: "any", label: `any of them ${what}` },
        ]}
        onChange={(event) => {
          const next = event.target.value;
          change(path, next === "all" && Object.keys(others).length === 0 ? names : { [next]: names, ...others });
        }}
      />
    </>
  );
}

function ClockFields({ kinds }: { kinds: readonly Kind[] }) {
  const { shapes } = useForm();
  const schedule = shapes.named("Schedule");
  const fields = shapes.fields(schedule);
  const dst = shapes.fields(fields.dst ?? {});
  const isCron = kinds.includes("cron");
  return (
    <>
      <div className="grid">
        <Spelled path={["schedule", "timezone"]} spelling={TEXT} list="time-zones" hint={`Yours is ${zone}.`} />
        <Zones />
        {isCron &&
          Object.entries(dst).map(([name, field]) => (
            <ChoiceOf key={name} path={["schedule", "dst", name]} values={shapes.values(field) ?? []} />
          ))}
      </div>
      <details>
        <summary>Bounds, calendar, blackouts</summary>
        <div className="grid">
          {CLOCK.map((name) =>
            name === "calendar" ? (
              <Calendar key={name} />
            ) : (
              <Field key={name} path={["schedule", name]} schema={fields[name] ?? {}} />
            ),
          )}
        </div>
      </details>
    </>
  );
}

/** Hundreds of them, which never change. */
const Zones = memo(function Zones() {
  return (
    <datalist id="time-zones">
      {zones.map((one) => (
        <option key={one} value={one} />
      ))}
    </datalist>
  );
});

function Calendar() {
  const { headers } = useForm();
  const calendars = useQuery({
    queryKey: ["calendars", headers["X-Namespace"], "names"],
    queryFn: async () =>
      (await answer(api.GET("/calendars", { params: { query: { limit: 200 } }, headers }))).items.map((one) => one.id),
    staleTime: 60_000,
  });
  return <ChoiceOf path={["schedule", "calendar"]} values={calendars.data ?? []} />;
}
