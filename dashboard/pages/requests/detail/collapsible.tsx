/** A part of a section that the user can collapse. */
import type { ReactNode } from "react";
import { formatCount } from "../../../ui/numbers.ts";

interface CollapsibleProps {
  title: string;
  count?: number;
  /** Buttons beside the title. */
  actions?: ReactNode;
  /** At first. */
  isOpen?: boolean;
  children: ReactNode;
}

export function Collapsible({ title, count, actions, isOpen = true, children }: CollapsibleProps) {
  return (
    <div className="fold">
      <div className="fold-actions">{actions}</div>
      <details open={isOpen}>
        <summary>
          <h3>{title}</h3>
          {count !== undefined && <span className="hint">{formatCount(count)}</span>}
        </summary>
        {children}
      </details>
    </div>
  );
}
