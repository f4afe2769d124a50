/** A job while it is written: as a form or as YAML, which are two views of one text, with its plan beside it. */

import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import type { Shape } from "../api/client";
import type { OwnNamespace } from "../api/namespace";
import { useQueryPart } from "../lib/hooks";
import { useLeaving } from "../lib/leaving";
import { Confirm } from "../ui/dialog";
import { Button, Found, Loading, Notice } from "../ui/parts";
import { isObject } from "./definition";
import { read, type Written } from "./document";
import { type Draft, draftOf, dropDraft, keepDraft } from "./drafts";
import { FormProvider, useChanges } from "./form/context";
import { focusField } from "./form/focus";
import { JobForm } from "./form/form";
import type { Conflict } from "./merge";
import { type Problem, usePlan } from "./plan";
import { PlanPanel } from "./plan-panel";
import { Conflicts, Review } from "./review";
import { useShapes } from "./shapes";
import type { Base, Start } from "./start";

const YamlEditor = lazy(() => import("./yaml-editor"));

interface EditorProps {
  /** Null where a new job is written. */
  job: string | null;
  /** What was begun, under which a draft of it is kept. */
  of: string;
  start: Start;
  namespace: OwnNamespace;
  onSaved: (job: Shape<"Job">) => void;
}

export function Editor({ job, of, start, namespace, onSaved }: EditorProps) {
  const [draft] = useState(() => draftOf(of, namespace));
  const [written, setWritten] = useState<Written>(() => read(draft?.text ?? start.text));
  const [base, setBase] = useState<Base | null>(draft?.base ?? start.base);
  const [isRestored, setRestored] = useState(draft !== null);
  const [conflicts, setConflicts] = useState<readonly Conflict[]>([]);
  const [view, setView] = useQueryPart("view", "form");
  const [isReviewed, setReviewed] = useState(false);
  const [goTo, setGoTo] = useState<{ from: number } | null>(null);
  const [opened, setOpened] = useState<{ path: string } | null>(null);
  const shapes = useShapes();
  const isUnsaved = written.text !== (base?.text ?? start.text);
  const [isAsked, setAsked] = useState(false);
  const planned = usePlan(written, job, namespace, base?.version ?? null, !isUnsaved && !isAsked);
  const changes = useChanges(setWritten);
  const leave = useUnsaved(of, namespace, { text: written.text, base }, isUnsaved);

  const show = useCallback(
    (problem: Problem) => {
      if (view === "form" && problem.path && focusField(problem.path, setOpened)) return;
      setView("yaml");
      setGoTo({ from: problem.from });
    },
    [view, setView],
  );
  const [first] = planned.problems;
  const review = () => {
    setAsked(true);
    if (first && planned.isCurrent) show(first);
    else setReviewed(true);
  };
  useSaveKey(review);
  const takeUp = (next: Base, text: Written, found: readonly Conflict[]) => {
    setBase(next);
    setWritten(text);
    setConflicts(found);
    setReviewed(false);
  };
  const schedule = written.value?.schedule;
  return (
    <>
      <div className="row wrap between">
        <fieldset className="segments">
          <legend className="visually-hidden">View</legend>
          {(["form", "yaml"] as const).map((one) => (
            <button key={one} type="button" aria-pressed={view === one} onClick={() => setView(one)}>
              {one === "form" ? "Form" : "YAML"}
            </button>
          ))}
        </fieldset>
      </div>
      {isRestored && (
        <Notice tone="busy">
          <div className="row wrap between">
            <span className="grow">This is what you wrote here before and did not save.</span>
            <Button
              small
              onClick={() => {
                setWritten(read(start.text));
                setBase(start.base);
                setRestored(false);
              }}
            >
              Drop it
            </Button>
          </div>
        </Notice>
      )}
      {conflicts.length > 0 && <Conflicts conflicts={conflicts} />}
      <div className="editor">
        <div className="writing">
          {view === "yaml" ? (
            <Suspense fallback={<Loading lines={8} />}>
              <YamlEditor
                text={written.text}
                onChange={(text) => setWritten(read(text))}
                problems={planned.problems}
                shapes={shapes.data}
                goTo={goTo}
              />
            </Suspense>
          ) : written.value === null ? (
            <Notice tone="bad">
              <span>
                The YAML cannot be read, so there is nothing to fill the form with: {written.misread[0]?.message}
              </span>
              <div>
                <Button onClick={() => setView("yaml")}>Correct it in the YAML</Button>
              </div>
            </Notice>
          ) : (
            <Found query={shapes} lines={8}>
              {(known) => (
                <FormProvider
                  value={{
                    value: written.value ?? {},
                    shapes: known,
                    headers: namespace.headers,
                    isNew: job === null,
                    problems: planned.problems,
                    opened,
                    ...changes,
                  }}
                >
                  <JobForm />
                </FormProvider>
              )}
            </Found>
          )}
        </div>
        <PlanPanel
          planned={planned}
          text={written.text}
          timezone={isObject(schedule) && typeof schedule.timezone === "string" ? schedule.timezone : "UTC"}
          show={show}
        />
      </div>
      <div className="editor-foot">
        <span className="soft grow cut" role="status">
          {isUnsaved ? "Not saved yet." : base?.version ? `This is version ${base.version}, as it is in force.` : ""}
        </span>
        {first && (
          <Button kind="danger" onClick={() => show(first)}>
            {planned.problems.length} to correct
          </Button>
        )}
        <Button kind="primary" icon="check" onClick={review} title="Ctrl+S">
          {job === null ? "Look over and create" : "Look over and save"}
        </Button>
      </div>
      {isReviewed && (
        <Review
          job={job}
          written={written}
          base={base}
          planned={planned}
          namespace={namespace}
          onClose={() => setReviewed(false)}
          goOn={takeUp}
          onSaved={(saved) => {
            leave.forget();
            onSaved(saved);
          }}
        />
      )}
      {leave.asked && (
        <Confirm
          title="Leave without saving?"
          does="Leave without saving"
          otherwise="Stay"
          danger
          onClose={leave.stay}
          run={async () => {
            leave.forget();
            leave.asked?.();
          }}
        >
          <p>What you wrote here is not saved, and would be lost.</p>
        </Confirm>
      )}
    </>
  );
}

/** Unsaved text: whoever leaves is asked, and whoever only went back finds it again. */
function useUnsaved(of: string, namespace: OwnNamespace, draft: Draft, isUnsaved: boolean) {
  const [asked, setAsked] = useState<(() => void) | null>(null);
  const kept = useRef({ draft, isUnsaved });
  kept.current = { draft, isUnsaved };
  const isOver = useRef(false);
  useLeaving(isUnsaved, (go) => (isOver.current ? go() : setAsked(() => go)));
  useEffect(() => {
    dropDraft(of, namespace);
    return () => {
      if (kept.current.isUnsaved && !isOver.current) keepDraft(of, namespace, kept.current.draft);
    };
  }, [of, namespace]);
  return {
    asked,
    stay: () => setAsked(null),
    forget: () => {
      isOver.current = true;
    },
  };
}

function useSaveKey(save: () => void): void {
  const held = useRef(save);
  held.current = save;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== "s") return;
      event.preventDefault();
      const dialog = document.querySelector<HTMLDialogElement>("dialog[open]");
      if (!dialog) held.current();
      else dialog.querySelector("form")?.requestSubmit();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}
