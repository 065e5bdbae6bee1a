/** The filter as a text, with completion while the user types, and an error message below the field. */
import { useId, useRef } from "react";
import type { Suggestion } from "../../../inspector/filter-completion.ts";
import { Icon } from "../../../ui/icon.tsx";
import { useFilterText, type FilterTextOptions } from "./use-filter-text.ts";

interface FilterInputProps extends FilterTextOptions {
  error: string | undefined;
}

export function FilterInput({ error, ...options }: FilterInputProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const { text, suggestions, chosen, type, handleKey, complete, choose, close } = useFilterText(
    input,
    options,
  );
  // The filter is not complete while the user chooses a value.
  const shownError = suggestions.length > 0 ? undefined : error;
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
        onClick={complete}
        onBlur={close}
        data-filter=""
      />
      <kbd aria-hidden="true">/</kbd>
      <Suggestions id={id} suggestions={suggestions} chosen={chosen} onChoose={choose} />
      {shownError !== undefined && (
        <p className="error" id={`${id}error`} role="alert">
          {shownError}
        </p>
      )}
    </div>
  );
}

interface SuggestionsProps {
  /** The id of the input: those of the list and its options begin with it. */
  id: string;
  suggestions: readonly Suggestion[];
  chosen: number;
  onChoose: (index: number) => void;
}

function Suggestions({ id, suggestions, chosen, onChoose }: SuggestionsProps) {
  return (
    <ul
      id={`${id}list`}
      role="listbox"
      aria-label="Suggestions"
      className="menu suggestions"
      hidden={suggestions.length === 0}
    >
      {suggestions.map(({ text, hint }, index) => (
        <li
          key={text}
          id={`${id}${index}`}
          role="option"
          aria-selected={index === chosen}
          className="menu-item"
          data-highlighted={index === chosen ? "" : undefined}
          // The input keeps the focus.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onChoose(index)}
        >
          <bdi>{text}</bdi>
          <span className="hint">{hint}</span>
        </li>
      ))}
    </ul>
  );
}
