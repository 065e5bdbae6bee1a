/**
 * Changes of traffic policies that are not saved yet. They stay in memory while the user looks at other pages, and the browser
 * asks before it closes the page.
 */
import { useSyncExternalStore } from "react";
import { useMe } from "../../../app/session-state.ts";

const drafts = new Map<string, string>();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function confirmClosing(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

function setDraft(key: string, text: string | null): void {
  if (text === null) drafts.delete(key);
  else drafts.set(key, text);
  if (drafts.size > 0) window.addEventListener("beforeunload", confirmClosing);
  else window.removeEventListener("beforeunload", confirmClosing);
  for (const notify of listeners) notify();
}

export interface PolicyDraft {
  /** null: there are no unsaved changes. */
  text: string | null;
  set: (text: string | null) => void;
  /** The newest text, even after the component was unmounted. */
  read: () => string | null;
}

export function usePolicyDraft(tunnelId: string): PolicyDraft {
  const key = `${useMe().user.id} ${tunnelId}`;
  const read = () => drafts.get(key) ?? null;
  const text = useSyncExternalStore(subscribe, read);
  return { text, set: (next) => setDraft(key, next), read };
}
