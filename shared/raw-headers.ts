/**
 * The header of a request or a response as it travels: names and values in turn in one flat array, which keeps
 * repeated names apart and in order.
 */

export function* headerPairs<Part>(lines: readonly Part[]): Generator<[name: Part, value: Part]> {
  for (let at = 0; at < lines.length; at += 2) yield [lines[at]!, lines[at + 1]!];
}

/** Replaces values in place. */
export function replaceHeaderValues(
  lines: string[],
  replace: (name: string, value: string) => string,
): void {
  for (let at = 0; at < lines.length; at += 2) lines[at + 1] = replace(lines[at]!, lines[at + 1]!);
}
