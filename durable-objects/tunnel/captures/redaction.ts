/** Takes out of a head what its owner wants nobody to read later. */
import { REDACTED } from "../../../protocol/schemas/inspector/captures.ts";

/**
 * @param lines names and values in turn. They are left as they are: the visit may still need them.
 * @param names in lower case.
 */
export function redactHeaders(lines: string[], names: ReadonlySet<string>): string[] {
  const kept = lines.slice();
  for (let i = 0; i < kept.length; i += 2) {
    const name = kept[i]!;
    if (names.has(name) || names.has(name.toLowerCase())) kept[i + 1] = REDACTED;
  }
  return kept;
}
