/**
 * The header of a request or a response as it travels: names and values in turn in one flat array, which keeps
 * repeated names apart and in order.
 */

export function* headerPairs<Part>(lines: readonly Part[]): Generator<[name: Part, value: Part]> {
  for (let at = 0; at < lines.length; at += 2) yield [lines[at]!, lines[at + 1]!];
}

/** @returns how many characters the names and values have together. */
export function countChars(lines: readonly string[]): number {
  return lines.reduce((sum, { length }) => sum + length, 0);
}

/** @param name in lower case. @returns the first value; null when there is none. */
export function findHeader(lines: readonly string[], name: string): string | null {
  for (let at = 0; at < lines.length; at += 2) {
    const other = lines[at]!;
    // Most names have another length, which is quicker to compare.
    if (other.length === name.length && other.toLowerCase() === name) return lines[at + 1]!;
  }
  return null;
}

/** Replaces values in place. */
export function replaceHeaderValues(
  lines: string[],
  replace: (name: string, value: string) => string,
): void {
  for (let at = 0; at < lines.length; at += 2) lines[at + 1] = replace(lines[at]!, lines[at + 1]!);
}

/** @param contentType the value of a `Content-Type`, in any case (RFC 9110 §8.3.1). */
export function isEventStream(contentType: string): boolean {
  return /^\s*text\/event-stream\s*(?:;|$)/i.test(contentType);
}
