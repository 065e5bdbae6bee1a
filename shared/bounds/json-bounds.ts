/**
 * Bounds the values of a JSON text before it is parsed. The parser takes time for each value and for each level: 1 MiB
 * of `[` takes 100 ms, 1 MiB of different names 50 ms, and 1 MiB in one string one. Visitors wait meanwhile.
 */

/** A smaller text takes no more than some milliseconds, whatever it contains. */
export const UNBOUNDED_JSON_MAX_BYTES = 64 * 1024;
/** Every route, and every delivery of a vendor, needs fewer. */
export const JSON_MAX_VALUES = 10_000;
export const JSON_MAX_LEVELS = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);

/** Whether a JSON text has more values or more levels than that. A text that is not JSON can have any result. */
export function exceedsJsonBounds(
  text: Uint8Array,
  maxValues = JSON_MAX_VALUES,
  maxLevels = JSON_MAX_LEVELS,
): boolean {
  let values = 1;
  let level = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]!;
    if (byte === QUOTE) at = findEndOfString(text, at + 1);
    else if (byte === COMMA) values += 1;
    else if (OPENING.has(byte)) {
      values += 1;
      level += 1;
    } else if (CLOSING.has(byte)) level -= 1;
    if (values > maxValues || level > maxLevels) return true;
  }
  return false;
}

function findEndOfString(text: Uint8Array, start: number): number {
  let at = start;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1;
  return at;
}
