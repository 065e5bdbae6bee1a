/** Parts of a page: sections, rows of lists, badges. */
import { useId, type ReactNode } from "react";
import { useRowFocus } from "./focus/row-focus.ts";
import type { Tone } from "./figures/tone.ts";

interface SectionProps {
  title: string;
  /** Buttons beside the title. */
  actions?: ReactNode;
  children: ReactNode;
}

export function Section({ title, actions, children }: SectionProps) {
  const id = useId();
  return (
    <section className="card" aria-labelledby={id}>
      <header className="section-header">
        <h2 id={id}>{title}</h2>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

export function Rows({ children }: { children: ReactNode }) {
  return <ul className="rows">{children}</ul>;
}

interface RowProps {
  children: ReactNode;
  actions?: ReactNode;
}

/** An entry of a list, with buttons for its actions. */
export function Row({ children, actions }: RowProps) {
  return (
    <li {...useRowFocus<HTMLLIElement>()}>
      <div className="about">{children}</div>
      {actions !== undefined && <div className="actions">{actions}</div>}
    </li>
  );
}

export function Badge({ tone = "neutral", children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

/** A smaller line below the name of a row. */
export function Detail({ children }: { children: ReactNode }) {
  return <div className="hint">{children}</div>;
}
