/** Readable paths and queries of URLs, in which letters beyond ASCII are percent-encoded. */

/** One character beyond ASCII in UTF-8. */
const ENCODED_CHARACTER = /%[c-f][0-9a-f](?:%[89ab][0-9a-f]){1,3}/gi;

/** Decodes letters beyond ASCII, if they are printable. The rest, such as `%2F`, stays as it was sent. */
export function decodeLetters(text: string): string {
  return text.replace(ENCODED_CHARACTER, decodePrintable);
}

function decodePrintable(encoded: string): string {
  try {
    const decoded = decodeURIComponent(encoded);
    // Also excluded: spaces of other scripts, which look like the end of the path. The joiner of emoji is harmless.
    return /[\p{C}\p{Z}]/u.test(decoded.replaceAll("\u200d", "")) ? encoded : decoded;
  } catch {
    // Not UTF-8.
    return encoded;
  }
}
