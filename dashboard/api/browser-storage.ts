/**
 * Small values in the browser's storage. If the browser refuses access, or its storage is full, they are stored as long as the
 * page is open.
 */
type StorageArea = "localStorage" | "sessionStorage";

/** The values that the browser did not store; null: removed. */
const memory = new Map<string, string | null>();

export function writeStored(where: StorageArea, name: string, value: string | null): void {
  try {
    if (value === null) globalThis[where].removeItem(name);
    else globalThis[where].setItem(name, value);
    memory.delete(name);
  } catch {
    memory.set(name, value);
  }
}

export function readStored(where: StorageArea, name: string): string | null {
  const unstored = memory.get(name);
  if (unstored !== undefined) return unstored;
  try {
    return globalThis[where].getItem(name);
  } catch {
    return null;
  }
}
