/** Whether the system prefers dark pages. */
import { useSyncExternalStore } from "react";

const darkMedia = matchMedia("(prefers-color-scheme: dark)");

function subscribe(notify: () => void): () => void {
  darkMedia.addEventListener("change", notify);
  return () => darkMedia.removeEventListener("change", notify);
}

export function useColorScheme(): "light" | "dark" {
  return useSyncExternalStore(subscribe, () => (darkMedia.matches ? "dark" : "light"));
}
