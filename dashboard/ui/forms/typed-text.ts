/** The text of a field whose value is in the URL. */
import { useEffect, useState } from "react";
import { SentFilters } from "./sent-filters.ts";

/** How long after the last key the value follows by default, so that typing in a long list stays fast. */
const TYPING_PAUSE_MS = 150;

/**
 * The URL changes a moment after it was set: a field that showed its value directly would move the caret to the end, and lose
 * keys.
 *
 * @param onChange sets the value in the URL.
 */
export function useTypedText(
  value: string,
  onChange: (value: string) => void,
  pauseMs = TYPING_PAUSE_MS,
): [typed: string, setTyped: (text: string) => void] {
  const [typed, setTyped] = useState(value);
  const [sent] = useState(() => new SentFilters());
  useEffect(() => {
    if (!sent.receive(value)) setTyped(value);
  }, [value, sent]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => {
      if (sent.send(typed, value)) onChange(typed);
    }, pauseMs);
    return () => clearTimeout(timer);
  });
  return [typed, setTyped];
}
