/** Secrets that visitors show: how they are remembered, and how they are compared. */
const encoder = new TextEncoder();

/** Of this isolate alone, so that what it remembers is worth nothing elsewhere. */
let key: Promise<CryptoKey> | undefined;

/** @returns sixteen-bit units, for a key of a Map: nobody reads it. */
export async function keyedHash(text: string): Promise<string> {
  key ??= crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
  ]) as Promise<CryptoKey>;
  const mac = await crypto.subtle.sign("HMAC", await key, encoder.encode(text));
  return String.fromCharCode(...new Uint16Array(mac));
}

/** In a time that depends on the lengths only. */
export function equalInConstantTime(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let at = 0; at < a.length; at++) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference === 0;
}
