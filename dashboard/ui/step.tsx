/** A page with a single step: the product's name, a heading, and what the user does next. */
import { useEffect, useRef, type ReactNode } from "react";
import { useDocumentTitle } from "./document-title.ts";

interface StepProps {
  title: string;
  children: ReactNode;
}

/** The first input has the focus, or else the heading. Each step of a flow needs a `key` of its own. */
export function Step({ title, children }: StepProps) {
  const card = useRef<HTMLDivElement>(null);
  useDocumentTitle(title);
  useEffect(() => {
    const input = card.current?.querySelector<HTMLElement>("input, select");
    (input ?? card.current?.querySelector<HTMLElement>("h1"))?.focus();
  }, []);
  return (
    <main className="step">
      <a className="brand" href="/">
        Underpass
      </a>
      <div className="card" ref={card}>
        <h1 tabIndex={-1}>{title}</h1>
        {children}
      </div>
    </main>
  );
}
