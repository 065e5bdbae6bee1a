import { useEffect } from "react";

/** Sets the title of the browser's tab while the component is shown. */
export function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Underpass`;
  }, [title]);
}
