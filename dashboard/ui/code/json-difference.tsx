/** The changes from one JSON document to another, line by line. Load it lazily. */
import { json } from "@codemirror/lang-json";
import { unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { createEditor } from "./editor-frame.ts";

interface JsonDifferenceProps {
  /** Names the text for screen readers. */
  label: string;
  original: string;
  changed: string;
}

/** Lines around each change that are shown. */
const CONTEXT_LINES = 3;

export default function JsonDifference({ label, original, changed }: JsonDifferenceProps) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const editor = createEditor(host.current!, changed, [
      json(),
      unifiedMergeView({
        original,
        mergeControls: false,
        highlightChanges: false,
        collapseUnchanged: { margin: CONTEXT_LINES, minSize: CONTEXT_LINES },
      }),
      EditorView.lineWrapping,
      EditorState.readOnly.of(true),
      EditorView.editable.of(false),
      EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    ]);
    return () => editor.destroy();
  }, [label, original, changed]);
  return <div ref={host} className="code-editor" />;
}
