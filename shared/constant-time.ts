/** Comparison of secrets without a timing side channel. */

/** Takes a time that depends on the lengths only, which are not secret. */
export function equalInConstantTime(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let at = 0; at < a.length; at++) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference === 0;
}

/** The same for bytes. */
export function equalBytesInConstantTime(a: Uint8Array, b: Uint8Array): boolean {
  if (a.byteLength !== b.byteLength) return false;
  let difference = 0;
  for (let at = 0; at < a.byteLength; at++) difference |= a[at]! ^ b[at]!;
  return difference === 0;
}
