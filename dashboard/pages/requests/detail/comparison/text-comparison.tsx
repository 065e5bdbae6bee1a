/** Two texts side by side, with their differences marked. Unchanged parts are folded. */
import { MergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";

/** The search for the smallest difference ends after this, so that no input makes the page hang. */
const DIFF_TIMEOUT_MS = 200;
const DIFF_SCAN_LINES = 1_000;
const CONTEXT_LINES = 3;

/** In the colors of the page, which also reach a shadow root. */
const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--ground)", fontSize: "0.8125rem" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-gutters": {
    color: "var(--muted)",
    backgroundColor: "var(--side)",
    border: "none",
  },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "var(--bad-soft)" },
  "&.cm-merge-b .cm-changedLine": { backgroundColor: "var(--good-soft)" },
  "&.cm-merge-a .cm-changedText, &.cm-merge-b .cm-changedText": {
    background: "none",
    textDecoration: "underline",
    textUnderlineOffset: "0.2em",
  },
  ".cm-collapsedLines": {
    color: "var(--muted)",
    background: "var(--side)",
    padding: "0.25rem 0.75rem",
  },
});

export interface TextComparisonProps {
  label: string;
  before: string;
  after: string;
}

/** In a shadow root the editor uses constructed style sheets, which the page's policy allows. */
export function TextComparison({ label, before, after }: TextComparisonProps) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const shadow = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const view = new MergeView({
      a: { doc: before, extensions: buildExtensions(`${label}, original`) },
      b: { doc: after, extensions: buildExtensions(`${label}, compared with`) },
      parent: shadow,
      root: shadow,
      collapseUnchanged: { margin: CONTEXT_LINES },
      diffConfig: { scanLimit: DIFF_SCAN_LINES, timeout: DIFF_TIMEOUT_MS },
    });
    return () => view.destroy();
  }, [label, before, after]);
  return <div className="text-comparison" ref={host} />;
}

function buildExtensions(label: string): Extension[] {
  return [
    THEME,
    lineNumbers(),
    EditorView.lineWrapping,
    EditorState.readOnly.of(true),
    EditorView.perLineTextDirection.of(true),
    EditorView.contentAttributes.of({ "aria-label": label }),
  ];
}
