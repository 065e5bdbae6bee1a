/** Small values in the browser's storage. If the browser refuses access, they are stored as long as the page is open. */
type StorageArea = "localStorage" | "sessionStorage";

const memory = new Map<string, string>();

export function writeStored(where: StorageArea, name: string, value: string | null): void {
  try {
    if (value === null) window[where].removeItem(name);
    else window[where].setItem(name, value);
  } catch {
    if (value === null) memory.delete(name);
    else memory.set(name, value);
  }
}

export function readStored(where: StorageArea, name: string): string | null {
  try {
    return window[where].getItem(name);
  } catch {
    return memory.get(name) ?? null;
  }
}
