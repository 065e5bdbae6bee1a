/** Buttons for the most common terms of a filter. */
import { getAlternatives, toggleAlternative } from "../../../inspector/filter-text.ts";

const CHIPS = [
  { field: "status", values: ["2xx", "3xx", "4xx", "5xx"] },
  { field: "method", values: ["GET", "POST", "PUT", "PATCH", "DELETE"] },
  { field: "kind", values: ["websocket", "sse"] },
] as const;

const LABELS: Partial<Record<string, string>> = { websocket: "WebSocket", sse: "Events" };

interface FilterChipsProps {
  filter: string;
  onChange: (filter: string) => void;
}

export function FilterChips({ filter, onChange }: FilterChipsProps) {
  return CHIPS.map(({ field, values }) => {
    const chosen = getAlternatives(filter, field);
    return (
      <div key={field} className="chips" role="group" aria-label={`Filter by ${field}`}>
        {values.map((value) => (
          <button
            key={value}
            type="button"
            className="chip"
            aria-pressed={chosen.includes(value)}
            onClick={() => onChange(toggleAlternative(filter, field, value))}
          >
            {LABELS[value] ?? value}
          </button>
        ))}
      </div>
    );
  });
}
