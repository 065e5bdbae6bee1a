/** JSON from a message, a file, a setting or another program, which may be invalid. */

/** @returns undefined when the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
