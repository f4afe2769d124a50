/** Fields with their labels, hints and what is wrong with them. */

import type { InputHTMLAttributes, ReactNode, SelectHTMLAttributes, TextareaHTMLAttributes } from "react";
import { useId } from "react";

interface About {
  label: string;
  hint?: ReactNode;
  wrong?: string | null;
}

function useField({ hint, wrong }: About) {
  const id = useId();
  const described = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ");
  const own = { id, "aria-describedby": described || undefined, "aria-invalid": wrong ? true : undefined } as const;
  return { id, own };
}

function Field({ id, label, hint, wrong, children }: About & { id: string; children: ReactNode }) {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children}
      {hint && (
        <span className="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {wrong && (
        <span className="wrong" id={`${id}-wrong`} role="alert">
          {wrong}
        </span>
      )}
    </div>
  );
}

export function TextField({ label, hint, wrong, ...input }: About & InputHTMLAttributes<HTMLInputElement>) {
  const { id, own } = useField({ label, hint, wrong });
  return (
    <Field id={id} label={label} hint={hint} wrong={wrong}>
      <input className="input" type="text" autoComplete="off" spellCheck={false} {...input} {...own} />
    </Field>
  );
}

export function TextArea({ label, hint, wrong, ...input }: About & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const { id, own } = useField({ label, hint, wrong });
  return (
    <Field id={id} label={label} hint={hint} wrong={wrong}>
      <textarea className="input mono" spellCheck={false} {...input} {...own} />
    </Field>
  );
}

export interface Choice {
  value: string;
  label: string;
}

export function SelectField({
  label,
  hint,
  wrong,
  choices,
  ...select
}: About & { choices: readonly Choice[] } & SelectHTMLAttributes<HTMLSelectElement>) {
  const { id, own } = useField({ label, hint, wrong });
  return (
    <Field id={id} label={label} hint={hint} wrong={wrong}>
      <select className="input" {...select} {...own}>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    </Field>
  );
}

export function CheckField(props: {
  label: ReactNode;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
}) {
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={props.checked}
        disabled={props.disabled}
        onChange={(event) => props.onChange(event.target.checked)}
      />
      {props.label}
    </label>
  );
}
