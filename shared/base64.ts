/** Arguments of one call, which are on the stack. */
const CALL_MAX_BYTES = 8_192;

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CALL_MAX_BYTES) {
    text += String.fromCharCode(...bytes.subarray(at, at + CALL_MAX_BYTES));
  }
  return btoa(text);
}
