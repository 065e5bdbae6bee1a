/** The content of a page that has no data yet: one sentence, and the commands that make the first entry. */
import type { ReactNode } from "react";
import { Command } from "../copy.tsx";

export interface EmptyStateProps {
  title: string;
  /** In the order in which they are run. */
  commands?: readonly string[];
  children?: ReactNode;
  /** Below the commands. */
  footer?: ReactNode;
}

export function EmptyState({ title, commands, children, footer }: EmptyStateProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
      {commands !== undefined && (
        <div className="commands">
          {commands.map((command) => (
            <Command key={command}>{command}</Command>
          ))}
        </div>
      )}
      {footer}
    </div>
  );
}
