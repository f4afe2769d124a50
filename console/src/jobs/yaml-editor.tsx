/** A job as text: with names completed, and what is wrong marked where it is. */

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { useEffect, useRef } from "react";
import { shadowOf, yamlLook } from "./code";
import { completing } from "./complete";
import type { Problem } from "./plan";
import type { Shapes } from "./shapes";

/** A browser that types over coloured text itself puts in an inline style, which the policy of the pages forbids. */
const typingOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const text = event.data;
    const { from, to } = view.state.selection.main;
    if (event.inputType !== "insertText" || !text || from === to || view.composing) return false;
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type" });
    if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, insert)))
      view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});

interface YamlEditorProps {
  text: string;
  onChange: (text: string) => void;
  problems: readonly Problem[];
  shapes: Shapes | undefined;
  /** Where to go to; a new object goes there again. */
  goTo: { from: number } | null;
}

export default function YamlEditor({ text, onChange, problems, shapes, goTo }: YamlEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const given = useRef({ text, onChange, shapes });
  given.current = { text, onChange, shapes };

  useEffect(() => {
    if (!host.current) return;
    const root = shadowOf(host.current);
    const made = new EditorView({
      root,
      parent: root,
      doc: given.current.text,
      extensions: [
        yamlLook("The job as YAML"),
        lineNumbers(),
        lintGutter(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("  "),
        EditorState.tabSize.of(2),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ override: [completing(() => given.current.shapes)], icons: false }),
        highlightSelectionMatches(),
        search({ top: true }),
        typingOver,
        keymap.of([
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...completionKeymap,
          ...lintKeymap,
        ]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) given.current.onChange(update.state.doc.toString());
        }),
      ],
    });
    view.current = made;
    return () => {
      view.current = null;
      made.destroy();
    };
  }, []);

  useEffect(() => {
    const own = view.current;
    if (!own || own.state.doc.toString() === text) return;
    own.dispatch({ changes: { from: 0, to: own.state.doc.length, insert: text } });
  }, [text]);

  useEffect(() => {
    const own = view.current;
    if (!own) return;
    const end = own.state.doc.length;
    const marks = problems.map(({ from, to, message }) => ({
      from: Math.min(from, end),
      to: Math.min(Math.max(to, from), end),
      severity: "error" as const,
      message,
    }));
    own.dispatch(setDiagnostics(own.state, marks));
  }, [problems]);

  useEffect(() => {
    const own = view.current;
    if (!own || !goTo) return;
    const at = Math.min(goTo.from, own.state.doc.length);
    own.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
    own.focus();
  }, [goTo]);

  return <div className="yaml" ref={host} />;
}
