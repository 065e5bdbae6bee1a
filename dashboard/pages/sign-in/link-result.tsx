/** The result of a page that a link in an email opened: done, or why the link is not valid. */
import type { ReactNode } from "react";
import { Step } from "../../ui/step.tsx";

interface LinkResultProps {
  title: string;
  children: ReactNode;
  /** The text of the link that leads to the sign-in. */
  next: string;
}

export function LinkResult({ title, children, next }: LinkResultProps) {
  return (
    <Step key={title} title={title}>
      {children}
      <div className="actions">
        <a className="button primary" href="/">
          {next}
        </a>
      </div>
    </Step>
  );
}
