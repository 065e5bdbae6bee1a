/** Two texts side by side, with their differences marked. Unchanged parts are folded. */
import { MergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { editorTheme, openShadowRoot } from "../../../../ui/code/editor-theme.ts";

/** The search for the smallest difference ends after this, so that no input makes the page hang. */
const DIFF_TIMEOUT_MS = 200;
const DIFF_SCAN_LINES = 1_000;
const CONTEXT_LINES = 3;

const THEME = EditorView.theme({
  "&": { backgroundColor: "var(--ground)", fontSize: "0.8125rem" },
  ".cm-scroller": { lineHeight: "1.5" },
  "&.cm-merge-a .cm-changedText, &.cm-merge-b .cm-changedText": {
    background: "none",
    textDecoration: "underline",
    textUnderlineOffset: "0.2em",
  },
});

interface TextComparisonProps {
  label: string;
  before: string;
  after: string;
}

export function TextComparison({ label, before, after }: TextComparisonProps) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const shadow = openShadowRoot(element);
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
    editorTheme,
    THEME,
    lineNumbers(),
    EditorView.lineWrapping,
    EditorState.readOnly.of(true),
    EditorView.perLineTextDirection.of(true),
    EditorView.contentAttributes.of({ "aria-label": label }),
  ];
}
