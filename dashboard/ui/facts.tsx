/** The properties of a resource, each with its name and value. */
import type { ReactNode } from "react";

export function Facts({ children }: { children: ReactNode }) {
  return <dl className="facts">{children}</dl>;
}

interface FactProps {
  name: string;
  /** Takes the whole width, for long values. */
  isWide?: boolean;
  children: ReactNode;
}

export function Fact({ name, isWide = false, children }: FactProps) {
  return (
    <div className={isWide ? "wide" : undefined}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
