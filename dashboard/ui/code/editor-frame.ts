/** CodeMirror for one document of JSON. It is large, so only modules that are loaded lazily may import this. */
import { syntaxTree } from "@codemirror/language";
import { type EditorState, type Extension, RangeSetBuilder } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  ViewPlugin,
  type ViewUpdate,
} from "@codemirror/view";
import { editorTheme, openShadowRoot } from "./editor-theme.ts";

/** @param host an element without other content. */
export function createEditor(host: HTMLElement, doc: string, extensions: Extension): EditorView {
  const root = openShadowRoot(host);
  return new EditorView({
    doc,
    extensions: [editorTheme, frameTheme, jsonColors, extensions],
    root,
    parent: root,
  });
}

/** The names of the syntax nodes of JSON with their classes. */
const CLASSES: Readonly<Record<string, string>> = {
  PropertyName: "json-name",
  String: "json-string",
  Number: "json-literal",
  True: "json-literal",
  False: "json-literal",
  Null: "json-literal",
};

const jsonColors = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet;

    constructor({ state }: EditorView) {
      this.decorations = decorate(state);
    }

    update({ docChanged, state, startState }: ViewUpdate): void {
      if (docChanged || syntaxTree(state) !== syntaxTree(startState))
        this.decorations = decorate(state);
    }
  },
  { decorations: ({ decorations }) => decorations },
);

/** Decorates the whole document, because the documents that are edited here are small. */
function decorate(state: EditorState): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  syntaxTree(state).iterate({
    enter({ name, from, to }) {
      const className = CLASSES[name];
      if (className !== undefined) builder.add(from, to, Decoration.mark({ class: className }));
    },
  });
  return builder.finish();
}

const frameTheme = EditorView.theme({
  "&": {
    backgroundColor: "var(--card)",
    border: "1px solid var(--edge)",
    borderRadius: "var(--radius)",
    fontSize: "0.875rem",
  },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": {
    maxHeight: "var(--editor-max-height, none)",
    overflow: "auto",
    borderRadius: "var(--radius)",
    lineHeight: "1.6",
  },
  ".cm-content": { padding: "0.5rem 0", caretColor: "var(--text)" },
  "& .cm-activeLine, & .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  "&.cm-focused .cm-selectionBackground, & .cm-selectionBackground, & .cm-content ::selection": {
    backgroundColor: "var(--accent-soft)",
  },
  ".json-name": { color: "var(--accent)" },
  ".json-string": { color: "var(--good)" },
  ".json-literal": { color: "var(--warning)" },
  "& .cm-tooltip": {
    border: "1px solid var(--line)",
    borderRadius: "var(--radius)",
    backgroundColor: "var(--raised)",
    color: "var(--text)",
  },
  // The library's own marks are `data:` images, which the policy forbids.
  "& .cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad)",
    textUnderlineOffset: "0.2em",
  },
  "& .cm-lint-marker-error": {
    content: "none",
    width: "0.625rem",
    height: "0.625rem",
    margin: "0.375rem 0 0 0.125rem",
    borderRadius: "50%",
    backgroundColor: "var(--bad)",
  },
  "& .cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
});
