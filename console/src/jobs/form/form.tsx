/** A job as a form: the fields that most jobs use, and behind a word those that few do. */

import { Sheet } from "../../ui/parts";
import type { Path } from "../definition";
import { useForm } from "./context";
import { ChoiceOf, Field, FieldGrid, Spelled } from "./field";
import { Pairs } from "./pairs";
import { ScheduleSection } from "./schedule";
import { TasksSection } from "./task-list";
import { TemplateSection } from "./template";
import { COMMA_WORDS, type Spelling, TEXT, YAML } from "./texts";

const IF_IT_FAILS = ["timeout", "runTimeout", "onFailure", "deadline", "pauseAfterFailures"];
const RETRY = ["attempts", "delay", "backoff", "maxDelay"];
const ABOUT = ["name", "description", "tags", "params", "template", "with", "schedule", "tasks", "run", "command"];
const WHEN_MISSED = ["catchup", "overlap", "startDeadline"];
const NAME: Spelling = { write: TEXT.write, read: (text) => ({ value: text }) };

export function JobForm() {
  return (
    <div className="job-form stack">
      <About />
      <TemplateSection />
      <ScheduleSection />
      <TasksSection />
      <Sheet title="Parameters">
        <Pairs
          path={["params"]}
          spelling={YAML}
          add="Add a parameter"
          isTitled
          hint="Tasks read them as ${params.name}; whoever triggers the job can give other values."
        />
      </Sheet>
      <IfItFails />
      <WhenMissed />
      <Others />
    </div>
  );
}

function About() {
  const { isNew } = useForm();
  return (
    <Sheet title="About it">
      <div className="grid">
        {isNew && <Spelled path={["name"]} spelling={NAME} isNeeded />}
        <Spelled path={["tags"]} spelling={COMMA_WORDS} hint="With commas between them." />
        <div className="whole">
          <Spelled path={["description"]} spelling={TEXT} lines />
        </div>
      </div>
    </Sheet>
  );
}

function FieldsNamed({ names }: { names: readonly string[] }) {
  const { shapes } = useForm();
  const fields = shapes.fields(shapes.named("JobDefinition"));
  return names.map((name) => {
    const schema = fields[name];
    return schema && <Field key={name} path={[name]} schema={schema} />;
  });
}

function IfItFails() {
  const { shapes, value } = useForm();
  const retry = shapes.fields(shapes.named("Retry"));
  return (
    <Sheet title="If it fails, or takes long">
      <div className="stack">
        <div className="grid">
          {value.retries === undefined ? (
            RETRY.map((name) => <Field key={name} path={["retry", name]} schema={retry[name] ?? {}} />)
          ) : (
            <FieldsNamed names={["retries"]} />
          )}
          <FieldsNamed names={IF_IT_FAILS} />
        </div>
        <FieldGrid
          path={["retry"]}
          fields={Object.entries(retry).filter(([name]) => !RETRY.includes(name))}
          needed={[]}
          few={0}
          more="Which failures count, and a list of waits"
        />
      </div>
    </Sheet>
  );
}

function WhenMissed() {
  const { shapes, value } = useForm();
  const fields = shapes.fields(shapes.named("JobDefinition"));
  const catchup = shapes.fields(fields.catchup ?? {});
  const policy: Path = typeof value.catchup === "string" ? ["catchup"] : ["catchup", "policy"];
  return (
    <Sheet title="If fires are missed, or runs overlap">
      <div className="grid">
        <ChoiceOf
          path={policy}
          values={shapes.values(catchup.policy ?? {}) ?? []}
          word={{ label: "Missed fires", hint: "After an outage of the scheduler.", usual: "latest" }}
        />
        {["max", "window"].map((name) => (
          <Field key={name} path={["catchup", name]} schema={catchup[name] ?? {}} />
        ))}
        <FieldsNamed names={WHEN_MISSED.slice(1)} />
      </div>
    </Sheet>
  );
}

/** All else that a definition can have, as the server says. */
function Others() {
  const { shapes, value } = useForm();
  const known = [...ABOUT, ...IF_IT_FAILS, ...WHEN_MISSED, "retry", "retries"];
  const fields = Object.entries(shapes.fields(shapes.named("JobDefinition"))).filter(
    ([name]) => !known.includes(name) && (name !== "dependencies" || value.dependencies !== undefined),
  );
  return (
    <Sheet title="More">
      <FieldGrid
        path={[]}
        fields={fields}
        needed={[]}
        more="Concurrency, priority, guarantee, notices, cache, datasets"
      />
    </Sheet>
  );
}
