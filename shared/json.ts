/** JSON from a message, a file, a setting or another program, which may be invalid. */

/** @returns undefined when the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @returns no fields when the text is not a JSON object. */
export function parseJsonObject(text: string): Record<string, unknown> {
  const value = parseJson(text);
  return isJsonObject(value) ? value : {};
}

/** @param value from JSON. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
