/**
 * Keyboard shortcuts. A component registers its shortcuts while it is shown. The component that was shown last comes
 * first, so that the keys of a panel take precedence over those of the list behind it.
 */
import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Shortcut {
  /** As in `KeyboardEvent.key`. `Mod+` precedes a key that needs ⌘ on a Mac, and Ctrl elsewhere. */
  keys: readonly string[];
  /** Says what the key does, in the list of all shortcuts. */
  title: string;
  act: () => void;
  /** Whether the key acts here now. Otherwise it belongs to the component behind. */
  isEnabled?: (key: string) => boolean;
}

interface ShortcutGroup {
  title: string;
  shortcuts: readonly Shortcut[];
}

const isMac = navigator.platform.startsWith("Mac");

/** Elements for which Enter and Space have a meaning of their own. */
const ACTIVATED_BY_ENTER = "a, button, summary, [role^=menuitem], [role=option], [role=tab]";
/**
 * While the focus is in one of these, keys type text, or belong to the open menu or dialog. A menu that was closed keeps
 * the focus until the next frame; a key that is pressed in it is meant for the page.
 */
const OWNS_KEYS =
  "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], :is([role=dialog], [role=alertdialog], [role=menu], [role=listbox]):not([data-closed])";

let groups: readonly ShortcutGroup[] = [];
const listeners = new Set<() => void>();

function setGroups(next: readonly ShortcutGroup[]): void {
  groups = next;
  for (const notify of listeners) notify();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/**
 * Registers shortcuts while the component is shown.
 *
 * @param title names the group in the list of all shortcuts. Its shortcuts may change with each render.
 */
export function useShortcuts(title: string, shortcuts: readonly Shortcut[]): void {
  const newest = useRef(shortcuts);
  useEffect(() => {
    newest.current = shortcuts;
  });
  useEffect(() => {
    const group: ShortcutGroup = {
      title,
      get shortcuts() {
        return newest.current;
      },
    };
    setGroups([...groups, group]);
    return () => setGroups(groups.filter((each) => each !== group));
  }, [title]);
}

/** All shortcuts of the components that are shown now, in the order in which they were registered. */
export function useShortcutGroups(): readonly ShortcutGroup[] {
  return useSyncExternalStore(subscribe, () => groups);
}

/** How long a component may take to be shown. */
const SHOWN_WAIT_MAX_MS = 10_000;

/** Presses a key for a component that is about to be shown, such as a panel that loads first. */
export function pressWhenShown(groupTitle: string, key: string): void {
  const stop = subscribe(() => {
    const shortcut = groups
      .find(({ title }) => title === groupTitle)
      ?.shortcuts.find(({ keys }) => keys.includes(key));
    if (shortcut === undefined) return;
    stop();
    shortcut.act();
  });
  setTimeout(stop, SHOWN_WAIT_MAX_MS);
}

const KEY_NAMES: Record<string, string> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  PageUp: "Page Up",
  PageDown: "Page Down",
};

/** `⌘K` on a Mac, `Ctrl K` elsewhere. */
export function formatKey(key: string): string {
  if (key.startsWith("Mod+")) return `${isMac ? "⌘" : "Ctrl "}${key.slice(4).toUpperCase()}`;
  return KEY_NAMES[key] ?? key;
}

function handleKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const hasModifier = event.ctrlKey || event.metaKey;
  const key = hasModifier ? `Mod+${event.key.toLowerCase()}` : event.key;
  if (hasModifier && event.ctrlKey === isMac) return;
  if (!hasModifier && !acceptsKey(event)) return;
  const shortcut = groups
    .toReversed()
    .flatMap(({ shortcuts }) => shortcuts)
    .find(({ keys, isEnabled }) => keys.includes(key) && (isEnabled?.(key) ?? true));
  if (shortcut === undefined) return;
  event.preventDefault();
  shortcut.act();
}

/**
 * Whether a key without a modifier is free for shortcuts. An editor may be in a shadow root, where only the path of the event
 * names the element with the focus.
 */
function acceptsKey(event: KeyboardEvent): boolean {
  const elements = event.composedPath().filter((each) => each instanceof Element);
  if (elements.some((element) => element.matches(OWNS_KEYS))) return false;
  const isActivation = event.key === "Enter" || event.key === " ";
  return !isActivation || elements[0]?.matches(ACTIVATED_BY_ENTER) !== true;
}

window.addEventListener("keydown", handleKey);
