/** Removes the values of headers that a tunnel's owner does not want to be stored. */
import { REDACTED } from "../../../protocol/schemas/inspector/captures.ts";
import { replaceHeaderValues } from "../../../shared/raw-headers.ts";

/**
 * @param lines names and values in turn. They are not modified: the exchange may still need them.
 * @param names in lower case.
 */
export function redactHeaders(lines: string[], names: ReadonlySet<string>): string[] {
  const redacted = lines.slice();
  replaceHeaderValues(redacted, (name, value) =>
    names.has(name) || names.has(name.toLowerCase()) ? REDACTED : value,
  );
  return redacted;
}
