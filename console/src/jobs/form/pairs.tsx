/** Names and their values, such as an environment or the parameters of a job. */

import { useState } from "react";
import { Button } from "../../ui/parts";
import { isObject, named, type Path } from "../definition";
import { useForm, useValue, useWrong } from "./context";
import { type Spelling, useSpelled } from "./texts";
import { wordFor } from "./words";

interface PairsProps {
  path: Path;
  spelling: Spelling;
  hint?: string;
  add?: string;
  /** Where what is around it says already what it is about. */
  isTitled?: boolean;
}

export function Pairs({ path, spelling, hint, add = "Add", isTitled = false }: PairsProps) {
  const { change } = useForm();
  const value = useValue(path);
  const wrong = useWrong(path);
  const [fresh, setFresh] = useState("");
  const word = wordFor(path);
  const entries = isObject(value) ? Object.entries(value) : [];
  const isTaken = entries.some(([name]) => name === fresh.trim());
  const put = () => {
    if (!fresh.trim() || isTaken) return;
    change([...path, fresh.trim()], "");
    setFresh("");
  };
  return (
    <fieldset className="parts pairs" data-path={named(path)}>
      <legend className={isTitled ? "visually-hidden" : undefined}>{word.label}</legend>
      {entries.map(([name]) => (
        <PairOf
          key={name}
          path={[...path, name]}
          spelling={spelling}
          remove={() => change([...path, name], undefined)}
        />
      ))}
      <div className="row">
        <input
          className="input mono"
          aria-label={`Name of another entry of ${word.label}`}
          placeholder="name"
          autoComplete="off"
          spellCheck={false}
          value={fresh}
          onChange={(event) => setFresh(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            put();
          }}
        />
        <Button icon="plus" disabled={!fresh.trim() || isTaken} onClick={put}>
          {add}
        </Button>
      </div>
      {(hint ?? word.hint) && <span className="hint">{hint ?? word.hint}</span>}
      {wrong && (
        <span className="wrong" role="alert">
          {wrong}
        </span>
      )}
    </fieldset>
  );
}

function PairOf({ path, spelling, remove }: { path: Path; spelling: Spelling; remove: () => void }) {
  const { change } = useForm();
  const name = String(path.at(-1));
  const kept: Spelling = {
    ...spelling,
    read: (text, before) => (text === "" ? { value: "" } : spelling.read(text, before)),
  };
  const { text, wrong, type } = useSpelled(useValue(path), kept, (value) => change(path, value));
  return (
    <div className="pair-row">
      <span className="mono cut" title={name}>
        {name}
      </span>
      <input
        className="input mono"
        aria-label={name}
        aria-invalid={wrong ? true : undefined}
        title={wrong ?? undefined}
        autoComplete="off"
        spellCheck={false}
        value={text}
        data-path={named(path)}
        onChange={(event) => type(event.target.value)}
      />
      <Button kind="quiet" icon="close" aria-label={`Remove ${name}`} onClick={remove} />
    </div>
  );
}
