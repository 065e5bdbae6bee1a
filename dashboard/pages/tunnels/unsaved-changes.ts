/**
 * Changes of a tunnel's settings that are not saved yet. They stay in memory while the user looks at other pages, and the browser
 * asks before it closes the page.
 */
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useSyncExternalStore } from "react";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { useMe } from "../../app/session-state.ts";
import { notify } from "../../ui/feedback/notifications.tsx";

const drafts = new Map<string, unknown>();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function confirmClosing(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

function setDraft(key: string, value: unknown): void {
  if (value === null) drafts.delete(key);
  else drafts.set(key, value);
  if (drafts.size > 0) window.addEventListener("beforeunload", confirmClosing);
  else window.removeEventListener("beforeunload", confirmClosing);
  for (const notifyListener of listeners) notifyListener();
}

export interface Draft<Value> {
  /** null: there are no unsaved changes. */
  value: Value | null;
  set: (value: Value | null) => void;
}

interface DraftOptions {
  /** The tab of the tunnel's page. */
  tab: string;
  /** The edited thing in words, as in `The policy of shop`. */
  subject: string;
}

/** The draft of one tab. Says that unsaved changes remain when the user goes to another page. */
export function useDraft<Value>(
  { id }: Pick<Tunnel, "id">,
  { tab, subject }: DraftOptions,
): Draft<Value> {
  const navigate = useNavigate();
  const key = `${useMe().user.id} ${id} ${tab}`;
  const read = () => (drafts.get(key) ?? null) as Value | null;
  const value = useSyncExternalStore(subscribe, read);
  useEffect(() => {
    return () => {
      if (read() === null || location.pathname === `/tunnels/${id}`) return;
      const act = () => void navigate({ to: "/tunnels/$id", params: { id }, search: { tab } });
      notify(`${subject} has changes that are not saved.`, { label: "Go back", act });
    };
  }, [id]);
  return { value, set: (next) => setDraft(key, next) };
}
