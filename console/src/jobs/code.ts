/**
 * Editors of YAML, mounted in a shadow root: there their styles are style sheet objects, which the policy of the pages
 * allows, where elsewhere they would be inline.
 */

import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export function shadowOf(host: HTMLElement): ShadowRoot {
  return host.shadowRoot ?? host.attachShadow({ mode: "open" });
}

const colours = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--link)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: tags.content, color: "var(--ink)" },
  { tag: [tags.keyword, tags.labelName, tags.typeName, tags.meta], color: "var(--wait)" },
  { tag: tags.comment, color: "var(--ink-faint)", fontStyle: "italic" },
]);

const look = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--sheet)", fontSize: "13px", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "light-dark(#c7d8ff, #2f4a85)",
  },
  ".cm-gutters": { backgroundColor: "var(--sheet)", color: "var(--ink-faint)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "light-dark(#1d4ed80a, #8ab4ff12)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--ink)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--ink)",
    border: "1px solid var(--line-strong)",
    borderRadius: "5px",
    overflow: "hidden",
    maxWidth: "min(460px, 92vw)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "14em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--brand)", color: "var(--brand-ink)" },
  ".cm-tooltip-autocomplete ul li[aria-selected] .cm-completionDetail": { color: "var(--brand-ink)" },
  ".cm-completionDetail": { color: "var(--ink-faint)", fontStyle: "normal", marginLeft: "1em" },
  ".cm-tooltip.cm-completionInfo": { padding: "6px 9px", fontFamily: "var(--sans)" },
  ".cm-diagnostic": { fontFamily: "var(--sans)", padding: "5px 9px" },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--bad-fill)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad-fill)",
    textDecorationSkipInk: "none",
  },
  ".cm-lint-marker-error": {
    content: "normal",
    boxSizing: "border-box",
    border: "0.25em solid var(--bad-fill)",
    borderRadius: "50%",
    width: "0.85em",
    height: "0.85em",
    marginTop: "0.25em",
  },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--ink)", borderColor: "var(--line)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--raised)", borderColor: "var(--line-strong)" },
  ".cm-textfield": { backgroundColor: "var(--sheet)", borderColor: "var(--line-strong)" },
  ".cm-searchMatch": { backgroundColor: "var(--warn-soft)", outline: "1px solid var(--warn-fill)" },
  ".cm-searchMatch.cm-searchMatch-selected": { backgroundColor: "var(--warn-fill)" },
  ".cm-selectionMatch": { backgroundColor: "var(--brand-soft)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--brand-soft)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--bad-soft)" },
  // Differences. The signs say what colours say.
  "&.cm-merge-b .cm-changedLine": { backgroundColor: "var(--good-soft)" },
  ".cm-deletedChunk": { backgroundColor: "var(--bad-soft)", paddingLeft: "0" },
  ".cm-deletedChunk .cm-deletedLine, .cm-line.cm-changedLine": { position: "relative", paddingLeft: "22px" },
  ".cm-deletedLine::before, .cm-changedLine::before": { position: "absolute", left: "8px", color: "var(--ink-soft)" },
  ".cm-deletedLine::before": { content: '"−"' },
  ".cm-changedLine::before": { content: '"+"' },
  "&.cm-merge-b .cm-changedText": { background: "light-dark(#1f9d4f40, #5cd08a45)" },
  "&.cm-merge-b .cm-deletedChunk .cm-deletedText": { background: "light-dark(#d1353040, #ff8f8845)" },
  ".cm-changeGutter": { display: "none" },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: '"⋯"' },
  ".cm-collapsedLines": { background: "var(--sunken)", color: "var(--ink-soft)", fontFamily: "var(--sans)" },
});

/** What every view of YAML has. */
export function yamlLook(label: string): Extension {
  return [
    yaml(),
    syntaxHighlighting(colours),
    look,
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
  ];
}
