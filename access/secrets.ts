/** Secrets that visitors show: how they are remembered. */
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
