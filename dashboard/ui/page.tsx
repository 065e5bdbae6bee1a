/** A page within the shell: its title, its actions and its content. */
import { useEffect, useRef, type ReactNode } from "react";
import { useDocumentTitle } from "./document-title.ts";
import { ErrorBoundary } from "./feedback/error-boundary.tsx";

interface PageFrameProps {
  title: string;
  /** The title of the browser's tab, when it says more than the title of the page. */
  documentTitle?: string | undefined;
  /** A short line below the title. */
  about?: ReactNode;
  /** Buttons beside the title. */
  actions?: ReactNode;
  /** `wide`: the page has a table that needs the whole width. */
  width?: "normal" | "wide";
  children: ReactNode;
}

/** The heading takes the focus, so that a screen reader announces the new page. */
export function PageFrame(props: PageFrameProps) {
  const { title, documentTitle = title, about, actions, width = "normal", children } = props;
  const heading = useRef<HTMLHeadingElement>(null);
  useDocumentTitle(documentTitle);
  useEffect(() => {
    // A dialog that was opened while the page loaded keeps the focus.
    if (document.activeElement?.closest("[role=dialog]")) return;
    heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div className={`page ${width}`}>
      <header className="page-header">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {about !== undefined && <p className="hint">{about}</p>}
        </div>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </header>
      <ErrorBoundary>{children}</ErrorBoundary>
    </div>
  );
}
