/** Two texts as one, with what was taken out and what was put in. */

import { unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { shadowOf, yamlLook } from "./code";

export default function DiffView({ before, after, label }: { before: string; after: string; label: string }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!host.current) return;
    const root = shadowOf(host.current);
    const view = new EditorView({
      root,
      parent: root,
      doc: after,
      extensions: [
        yamlLook(label),
        EditorState.readOnly.of(true),
        EditorView.lineWrapping,
        unifiedMergeView({
          original: before,
          mergeControls: false,
          gutter: false,
          syntaxHighlightDeletions: false,
          collapseUnchanged: { margin: 2, minSize: 5 },
        }),
      ],
    });
    return () => view.destroy();
  }, [before, after, label]);
  return <div className="diff" ref={host} />;
}
