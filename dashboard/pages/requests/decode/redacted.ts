/**
 * The text that the API sends instead of the value of a header that it does not store: `REDACTED` of
 * `protocol/schemas/inspector/captures.ts`, whose schemas a browser must not load.
 */
export const REDACTED = "[redacted]";

/** @param value of one header, or of several with the same name, which are joined. */
export function isRedacted(value: string): boolean {
  return value.split(/\n|, /).every((each) => each === REDACTED);
}
