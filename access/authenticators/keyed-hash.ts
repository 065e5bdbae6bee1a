/** The keys under which caches remember visitors' secrets. */
const encoder = new TextEncoder();

/** Random for each isolate, so that a leaked cache key is useless elsewhere. */
let key: Promise<CryptoKey> | undefined;

/** @returns sixteen-bit code units, for use as the key of a Map; the string is not printable. */
export async function computeKeyedHash(text: string): Promise<string> {
  key ??= crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
  ]) as Promise<CryptoKey>;
  const mac = await crypto.subtle.sign("HMAC", await key, encoder.encode(text));
  return String.fromCharCode(...new Uint16Array(mac));
}
