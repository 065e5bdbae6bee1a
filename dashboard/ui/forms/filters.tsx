/** Controls that narrow a list. Their values are parameters of the page's URL. */
import { useRef, type ReactNode } from "react";
import { useShortcuts } from "../../app/shortcuts.ts";
import { useTypedText } from "./typed-text.ts";

interface FilterBarProps {
  /** Names the filtered list for screen readers. */
  label: string;
  children: ReactNode;
}

export function FilterBar({ label, children }: FilterBarProps) {
  return (
    <div className="filter-bar" role="search" aria-label={label}>
      {children}
    </div>
  );
}

interface FilterProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

interface SearchFilterProps extends FilterProps {
  /** Names the texts that can be typed, such as names or addresses. */
  placeholder: string;
}

/** `/` moves the focus to it. */
export function SearchFilter({ label, placeholder, value, onChange }: SearchFilterProps) {
  const [typed, setTyped] = useTypedText(value, onChange);
  const input = useRef<HTMLInputElement>(null);
  useShortcuts("Filter", [{ keys: ["/"], title: label, act: () => input.current?.focus() }]);
  return (
    <input
      ref={input}
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={typed}
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => setTyped(event.currentTarget.value)}
    />
  );
}

interface SelectFilterProps extends FilterProps {
  options: readonly { value: string; label: string }[];
}

export function SelectFilter({ label, value, options, onChange }: SelectFilterProps) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
}
