/** Small things that the browser keeps for a page. Where it refuses to, they last as long as the page. */
type Where = "localStorage" | "sessionStorage";

const memory = new Map<string, string>();

export function keep(where: Where, name: string, value: string | null): void {
  try {
    if (value === null) window[where].removeItem(name);
    else window[where].setItem(name, value);
  } catch {
    if (value === null) memory.delete(name);
    else memory.set(name, value);
  }
}

export function kept(where: Where, name: string): string | null {
  try {
    return window[where].getItem(name);
  } catch {
    return memory.get(name) ?? null;
  }
}
