/** Dialogs are the browser's own: focus stays in them, Escape closes them, and what is behind is inert. */

import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { TextField } from "./form";
import { Button, Wrong } from "./parts";

interface DialogProps {
  title: ReactNode;
  onClose: () => void;
  children: ReactNode;
  foot?: ReactNode;
  kind?: "plain" | "wide" | "drawer";
  onSubmit?: () => void;
}

export function Dialog({ title, onClose, children, foot, kind = "plain", onSubmit }: DialogProps) {
  const id = useId();
  const own = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = own.current;
    if (!dialog || dialog.open) return;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit?.();
  };
  const inside = (
    <>
      <div className="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" small icon="close" aria-label="Close" onClick={onClose} />
      </div>
      <div className="dialog-body">{children}</div>
      {foot && <div className="dialog-foot">{foot}</div>}
    </>
  );
  return (
    <dialog
      ref={own}
      className={`dialog ${kind}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      {onSubmit ? <form onSubmit={submit}>{inside}</form> : inside}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  children: ReactNode;
  does: string;
  /** What the button says that does nothing. */
  otherwise?: string;
  danger?: boolean;
  /** A name that must be typed first, where the step cannot be undone. */
  typed?: string;
  run: () => Promise<unknown>;
  onClose: () => void;
}

/** Asks before something happens, and stays open to say why it did not. */
export function Confirm({ title, children, does, otherwise = "Leave it", danger, typed, run, onClose }: ConfirmProps) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const go = async () => {
    if (busy || (typed !== undefined && text !== typed)) return;
    setBusy(true);
    setError(null);
    try {
      await run();
      onClose();
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => void go()}
      foot={
        <>
          <Button onClick={onClose}>{otherwise}</Button>
          <Button
            type="submit"
            kind={danger ? "danger" : "primary"}
            busy={busy}
            disabled={typed !== undefined && text !== typed}
          >
            {does}
          </Button>
        </>
      }
    >
      {children}
      {typed !== undefined && (
        <TextField label={`Type ${typed} to go on`} value={text} onChange={(event) => setText(event.target.value)} />
      )}
      {error !== null && <Wrong error={error} />}
    </Dialog>
  );
}
