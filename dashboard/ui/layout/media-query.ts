/** Media queries, such as the width of the screen, as a store for React. */
import { useSyncExternalStore } from "react";

/** Phones, as in styles/layout.css. */
const narrow = window.matchMedia("(width < 48rem)");
/** From this width on there is room for a list and the details of its selected row. */
const wide = window.matchMedia("(width >= 60rem)");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** Whether the page has room for one column only. */
export function useIsNarrow(): boolean {
  return useMediaQuery(narrow);
}

/** Whether a list and the details of its selected row fit beside each other. */
export function useIsWide(): boolean {
  return useMediaQuery(wide);
}

/** Whether the system asks for dark pages. The user can choose otherwise: see app/theme.ts. */
export function usePrefersDark(): boolean {
  return useMediaQuery(dark);
}

function useMediaQuery(media: MediaQueryList): boolean {
  return useSyncExternalStore(
    (notify) => {
      media.addEventListener("change", notify);
      return () => media.removeEventListener("change", notify);
    },
    () => media.matches,
  );
}
