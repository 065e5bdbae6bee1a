/** The filter as a text, with completion while the user types, and an error message below the field. */
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { flushSync } from "react-dom";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";
import {
  applySuggestion,
  completeFilter,
  type Completion,
} from "../../../inspector/filter-completion.ts";
import { Icon } from "../../../ui/icon.tsx";

/** How long the user must pause before the filter is applied. */
const TYPING_PAUSE_MS = 250;

export interface FilterInputProps {
  filter: string;
  error: string | undefined;
  onChange: (filter: string) => void;
  /** Moves the focus to the list. */
  onLeave: () => void;
  /** The requests whose values are suggested. */
  getRows: () => readonly CaptureSummary[];
}

export function FilterInput({ filter, error, onChange, onLeave, getRows }: FilterInputProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(filter);
  const [completion, setCompletion] = useState<Completion>();
  const [chosen, setChosen] = useState(-1);
  const [timer, setTimer] = useState<ReturnType<typeof setTimeout>>();
  /** Filters of this field that are on their way into the URL, while the user may type on. */
  const applied = useRef<string[]>([]);
  const suggestions = completion?.suggestions ?? [];
  // The filter is not complete while the user chooses a value.
  const shownError = suggestions.length > 0 ? undefined : error;

  // The filter was changed elsewhere: by a button, or by going back in the history.
  useEffect(() => {
    const index = applied.current.indexOf(filter);
    applied.current.splice(0, index + 1);
    if (index < 0) setText((typed) => (typed.trim() === filter ? typed : filter));
  }, [filter]);
  useEffect(() => () => clearTimeout(timer), [timer]);

  function close(): void {
    setCompletion(undefined);
    setChosen(-1);
  }

  function apply(next: string): void {
    clearTimeout(timer);
    const wanted = next.trim();
    if (wanted === filter) return;
    applied.current.push(wanted);
    onChange(wanted);
  }

  function complete(): void {
    const { value, selectionStart } = input.current!;
    const found = completeFilter(value, selectionStart ?? value.length, getRows());
    setCompletion(found.suggestions.length > 0 ? found : undefined);
    setChosen(-1);
  }

  function type(next: string): void {
    setText(next);
    clearTimeout(timer);
    setTimer(setTimeout(() => apply(next), TYPING_PAUSE_MS));
    complete();
  }

  function choose(index: number): void {
    const suggestion = suggestions[index];
    if (completion === undefined || suggestion === undefined) return;
    // What had been typed of the term is no longer the filter.
    clearTimeout(timer);
    const next = applySuggestion(text, completion.term, suggestion.text);
    // The caret is placed before the next key arrives, which needs the new text in the field.
    flushSync(() => setText(next.filter));
    input.current?.setSelectionRange(next.caret, next.caret);
    if (suggestion.text.endsWith(":")) {
      complete();
      return;
    }
    apply(next.filter);
    close();
  }

  function handleKey(event: KeyboardEvent): void {
    const count = suggestions.length;
    if (event.key === "ArrowDown" && count === 0 && text.trim() === "") complete();
    else if (event.key === "ArrowDown" && count > 0) setChosen((chosen + 1) % count);
    else if (event.key === "ArrowUp" && count > 0) setChosen(chosen > 0 ? chosen - 1 : count - 1);
    else if (event.key === "Tab" && chosen >= 0) choose(chosen);
    else if (event.key === "Enter" && chosen >= 0) choose(chosen);
    else if (event.key === "Enter") {
      close();
      apply(text);
      onLeave();
    } else if (event.key === "Escape" && count > 0) close();
    else if (event.key === "Escape") onLeave();
    else return;
    event.preventDefault();
  }
  return (
    <div className="filter-input">
      <Icon name="search" />
      <input
        ref={input}
        role="combobox"
        aria-label="Filter"
        aria-autocomplete="list"
        aria-expanded={suggestions.length > 0}
        aria-controls={`${id}list`}
        aria-activedescendant={chosen >= 0 ? `${id}${chosen}` : undefined}
        aria-invalid={shownError !== undefined}
        aria-describedby={shownError === undefined ? undefined : `${id}error`}
        placeholder="status:>=500 -path:/health method:POST"
        spellCheck={false}
        autoComplete="off"
        value={text}
        onChange={(event) => type(event.currentTarget.value)}
        onKeyDown={handleKey}
        onClick={() => complete()}
        onBlur={close}
        data-filter=""
      />
      <kbd aria-hidden="true">/</kbd>
      <ul
        id={`${id}list`}
        role="listbox"
        aria-label="Suggestions"
        className="menu suggestions"
        hidden={suggestions.length === 0}
      >
        {suggestions.map(({ text: suggestion, hint }, index) => (
          <li
            key={suggestion}
            id={`${id}${index}`}
            role="option"
            aria-selected={index === chosen}
            className="menu-item"
            data-highlighted={index === chosen ? "" : undefined}
            // The input keeps the focus.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => choose(index)}
          >
            <bdi>{suggestion}</bdi>
            <span className="hint">{hint}</span>
          </li>
        ))}
      </ul>
      {shownError !== undefined && (
        <p className="error" id={`${id}error`} role="alert">
          {shownError}
        </p>
      )}
    </div>
  );
}
