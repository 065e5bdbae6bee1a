/** Light or dark: as the system, unless the user chose one in this browser. */
import { useSyncExternalStore } from "react";
import { readStored, writeStored } from "../api/browser-storage.ts";

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const STORAGE_KEY = "underpass-theme";
const listeners = new Set<() => void>();

function getTheme(): Theme {
  const stored = readStored("localStorage", STORAGE_KEY);
  return THEMES.find((theme) => theme === stored) ?? "system";
}

export function setTheme(theme: Theme): void {
  writeStored("localStorage", STORAGE_KEY, theme === "system" ? null : theme);
  showTheme();
}

function showTheme(): void {
  applyStoredTheme();
  for (const notify of listeners) notify();
}

export function useTheme(): Theme {
  return useSyncExternalStore((notify) => {
    listeners.add(notify);
    return () => listeners.delete(notify);
  }, getTheme);
}

/** The user has chosen another one in another tab. */
window.addEventListener("storage", ({ key }) => {
  if (key === STORAGE_KEY) showTheme();
});

/** Style sheets read the attribute: see `color-scheme` in styles/tokens.css. */
export function applyStoredTheme(): void {
  document.documentElement.dataset.theme = getTheme();
}
