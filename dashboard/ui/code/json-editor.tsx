/** An editor of JSON, which marks mistakes at their line. Load it lazily. */
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { json } from "@codemirror/lang-json";
import { type Diagnostic, forceLinting, linter, lintGutter, lintKeymap } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { createEditor } from "./editor-frame.ts";
import { findJsonPath } from "./json-path.ts";
import type { FieldError } from "../../api/request.ts";

/** The first place where a text is not JSON. */
interface SyntaxMistake {
  message: string;
  /** In UTF-16 code units from the start of the text. */
  offset: number;
}

interface JsonEditorProps {
  /** Names the editor for screen readers. */
  label: string;
  text: string;
  /** The errors that the API reported for this text. */
  errors: readonly FieldError[];
  findSyntaxError: (text: string) => SyntaxMistake | null;
  isReadOnly?: boolean;
  onChange: (text: string) => void;
}

const LINT_DELAY_MS = 300;

/** The Tab key moves the focus on, so that the keyboard is not trapped. */
export default function JsonEditor(props: JsonEditorProps) {
  const { text, errors } = props;
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const current = useRef(props);
  current.current = props;

  useEffect(() => {
    const { label, isReadOnly = false } = current.current;
    const editor = createEditor(host.current!, current.current.text, [
      lineNumbers(),
      history(),
      json(),
      bracketMatching(),
      indentOnInput(),
      highlightActiveLine(),
      lintGutter(),
      linter((it) => findMistakes(it, current.current), { delay: LINT_DELAY_MS }),
      keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
      EditorView.domEventHandlers({ beforeinput: replaceSelection }),
      EditorView.lineWrapping,
      EditorState.readOnly.of(isReadOnly),
      EditorView.contentAttributes.of({ "aria-label": label }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) current.current.onChange(update.state.doc.toString());
      }),
    ]);
    view.current = editor;
    return () => editor.destroy();
  }, []);

  useEffect(() => {
    const { doc } = view.current!.state;
    if (doc.toString() === text) return;
    view.current!.dispatch({ changes: { from: 0, to: doc.length, insert: text } });
  }, [text]);

  useEffect(() => forceLinting(view.current!), [errors]);

  return <div ref={host} className="code-editor" />;
}

/** A browser that replaces several lines itself tries to keep their style with attributes, which our policy forbids. */
function replaceSelection(event: InputEvent, view: EditorView): boolean {
  const { state } = view;
  const { inputType, data, isComposing } = event;
  if (inputType !== "insertText" || data === null || isComposing) return false;
  if (state.readOnly || state.selection.main.empty) return false;
  event.preventDefault();
  view.dispatch(state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
  return true;
}

function findMistakes({ state }: EditorView, props: JsonEditorProps): Diagnostic[] {
  const { errors, findSyntaxError } = props;
  const mistake = findSyntaxError(state.doc.toString());
  if (mistake) {
    // At least one character, so that there is something to underline.
    const from = Math.min(mistake.offset, Math.max(0, state.doc.length - 1));
    const to = Math.min(from + 1, state.doc.length);
    return [{ from, to, severity: "error", message: mistake.message }];
  }
  return errors.map(({ path, message }) => ({
    ...findJsonPath(state, path),
    severity: "error",
    message: `${path} ${message}`,
  }));
}
