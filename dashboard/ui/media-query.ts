/** What the screen is like, as a store for React. */
import { useSyncExternalStore } from "react";

/** The width below which the shell hides its navigation: see styles/layout.css. */
const narrow = window.matchMedia("(width < 48rem)");

/** Whether the page has room for one column only. */
export function useIsNarrow(): boolean {
  return useSyncExternalStore(
    (notify) => {
      narrow.addEventListener("change", notify);
      return () => narrow.removeEventListener("change", notify);
    },
    () => narrow.matches,
  );
}
