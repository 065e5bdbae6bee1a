/**
 * What the API sends instead of the value of a header that it does not store: `REDACTED` of
 * `protocol/schemas/inspector/captures.ts`, whose schemas a browser must not load.
 */
export const REDACTED = "[redacted]";
