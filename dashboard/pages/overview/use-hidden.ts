/** Parts of the overview that the user can hide, in this browser. */
import { useState } from "react";
import { readStored, writeStored } from "../../api/browser-storage.ts";
import { notify } from "../../ui/feedback/notifications.tsx";

interface Hideable {
  isHidden: boolean;
  /** @param message says what was hidden, beside a button that shows it again. */
  hide: (message: string) => void;
}

export function useHidden(storageKey: string): Hideable {
  const [isHidden, setHidden] = useState(() => readStored("localStorage", storageKey) !== null);
  function store(next: boolean): void {
    writeStored("localStorage", storageKey, next ? "1" : null);
    setHidden(next);
  }
  function hide(message: string): void {
    store(true);
    notify(message, { label: "Show again", act: () => store(false) });
  }
  return { isHidden, hide };
}
