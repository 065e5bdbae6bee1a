/** The text of the filter while the user types, with the completion at the caret. */
import { useEffect, useState, type KeyboardEvent, type RefObject } from "react";
import { flushSync } from "react-dom";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";
import {
  applySuggestion,
  completeFilter,
  type Completion,
  type Suggestion,
} from "../../../inspector/filter-completion.ts";
import { SentFilters } from "../../../ui/forms/sent-filters.ts";

/** How long the user must pause before the filter is applied. */
const TYPING_PAUSE_MS = 250;

export interface FilterTextOptions {
  /** The filter that is applied. */
  filter: string;
  onChange: (filter: string) => void;
  /** Moves the focus to the list. */
  onLeave: () => void;
  /** The requests whose values are suggested. */
  getRows: () => readonly CaptureSummary[];
}

interface FilterText {
  text: string;
  suggestions: readonly Suggestion[];
  /** The index of the suggestion that Enter takes; -1 without one. */
  chosen: number;
  type: (next: string) => void;
  handleKey: (event: KeyboardEvent) => void;
  /** Shows the suggestions for the term at the caret. */
  complete: () => void;
  /** Takes a suggestion. */
  choose: (index: number) => void;
  /** Hides the suggestions. */
  close: () => void;
}

export function useFilterText(
  input: RefObject<HTMLInputElement | null>,
  { filter, onChange, onLeave, getRows }: FilterTextOptions,
): FilterText {
  const [text, setText] = useState(filter);
  const [completion, setCompletion] = useState<Completion>();
  const [chosen, setChosen] = useState(-1);
  const [timer, setTimer] = useState<ReturnType<typeof setTimeout>>();
  const [sent] = useState(() => new SentFilters());
  const suggestions = completion?.suggestions ?? [];

  // The filter was changed elsewhere: by a button, or by going back in the history.
  useEffect(() => {
    if (!sent.receive(filter)) setText((typed) => (typed.trim() === filter ? typed : filter));
  }, [filter, sent]);
  useEffect(() => () => clearTimeout(timer), [timer]);

  function close(): void {
    setCompletion(undefined);
    setChosen(-1);
  }

  function apply(next: string): void {
    clearTimeout(timer);
    const wanted = next.trim();
    if (sent.send(wanted, filter)) onChange(wanted);
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

  return { text, suggestions, chosen, type, handleKey, complete, choose, close };
}
