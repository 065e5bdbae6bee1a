/** A list of counts, each with a bar in proportion to the largest one. */
import type { Key, ReactNode } from "react";
import { formatCount } from "../../ui/numbers.ts";
import type { Tone } from "../../ui/figures/tone.ts";

interface BarListEntry {
  key: Key;
  label: ReactNode;
  count: number;
  tone?: Tone;
  /** Shown beside the count. */
  detail?: ReactNode;
}

export function BarList({ label, entries }: { label: string; entries: readonly BarListEntry[] }) {
  const max = Math.max(1, ...entries.map(({ count }) => count));
  return (
    <ul className="bar-list" aria-label={label}>
      {entries.map(({ key, label: name, count, tone = "neutral", detail }) => (
        <li key={key}>
          <div className={`count-bar ${tone}`} style={{ width: `${(count / max) * 100}%` }} />
          <span className="name">{name}</span>
          {detail !== undefined && <span className="hint">{detail}</span>}
          <span className="count">{formatCount(count)}</span>
        </li>
      ))}
    </ul>
  );
}
