/**
 * The theme and the shadow root of a view of CodeMirror. In a shadow root, CodeMirror uses constructed style sheets, which
 * our content security policy allows, instead of style elements.
 */
import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

/** @param host an element without other content. */
export function openShadowRoot(host: HTMLElement): ShadowRoot {
  return host.shadowRoot ?? host.attachShadow({ mode: "open" });
}

/** The variables of styles/tokens.css reach into the shadow root, in light and dark. */
export const editorTheme: Extension = EditorView.theme({
  "&": { color: "var(--text)" },
  ".cm-scroller": { fontFamily: "var(--mono)" },
  "& .cm-gutters": { border: "0", backgroundColor: "var(--side)", color: "var(--muted)" },
  "&.cm-merge-b .cm-changedLine": { backgroundColor: "var(--good-soft)" },
  "& .cm-deletedChunk, &.cm-merge-a .cm-changedLine": { backgroundColor: "var(--bad-soft)" },
  "& .cm-collapsedLines": {
    padding: "0.25rem 0.75rem",
    background: "var(--side)",
    color: "var(--muted)",
  },
});
