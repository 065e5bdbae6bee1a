/** Controls that narrow a list. Their values are parameters of the page's URL. */
import { useEffect, useState, type ReactNode } from "react";

/** How long after the last key the list follows, so that typing in a long list stays fast. */
const TYPING_PAUSE_MS = 150;

export function FilterBar({ children }: { children: ReactNode }) {
  return (
    <div className="filter-bar" role="search">
      {children}
    </div>
  );
}

interface FilterProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

export interface SearchFilterProps extends FilterProps {
  placeholder: string;
}

export function SearchFilter({ label, placeholder, value, onChange }: SearchFilterProps) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => onChange(typed), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  });
  return (
    <input
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

export interface SelectFilterProps extends FilterProps {
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
