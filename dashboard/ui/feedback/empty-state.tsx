/** What a page shows while it has no data yet: one sentence, and the command that makes the first entry. */
import type { ReactNode } from "react";
import { Command } from "../copy.tsx";

export interface EmptyStateProps {
  title: string;
  /** A command of the agent, with the address of this server. */
  command?: string;
  children?: ReactNode;
}

export function EmptyState({ title, command, children }: EmptyStateProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
      {command !== undefined && <Command>{command}</Command>}
    </div>
  );
}
