/** Bytes as text and back. */
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";

const encoder = new TextEncoder();

export function toUtf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text) as Uint8Array<ArrayBuffer>;
}

/** Takes an array, unlike the library's function: arguments by the ten thousand overflow the stack. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((bytes, { length }) => bytes + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

export function toHex(bytes: Uint8Array): string {
  return bytesToHex(bytes);
}

/** @throws Error for an odd number of digits, or anything but digits. */
export function fromHex(hex: string): Uint8Array<ArrayBuffer> {
  return hexToBytes(hex);
}

/** Sixteen bytes as PostgreSQL writes a UUID. */
export function toUuid(bytes: Uint8Array): string {
  return toHex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** Arguments of one call are on the stack, which bounds their number. */
const CALL_MAX_BYTES = 8_192;

// Newer runtimes have both natively; Node.js 24 does not.
type MaybeNative = Uint8Array & { toBase64?: () => string };
type MaybeNativeConstructor = typeof Uint8Array & {
  fromBase64?: (text: string) => Uint8Array<ArrayBuffer>;
};

export function toBase64(bytes: MaybeNative): string {
  if (bytes.toBase64) return bytes.toBase64();
  let text = "";
  for (let at = 0; at < bytes.length; at += CALL_MAX_BYTES) {
    text += String.fromCharCode(...bytes.subarray(at, at + CALL_MAX_BYTES));
  }
  return btoa(text);
}

export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/**
 * base64url (RFC 4648 §5) without padding, and with unused bits of zero: each value has one spelling. It is for
 * tokens: a second spelling of a token would pass as another token.
 *
 * @returns null for anything else.
 */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  return isBase64Url(text) ? fromBase64(text) : null;
}

const BASE64URL = /^(?:[\w-]{4})*(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?$/;

export function isBase64Url(text: string): boolean {
  return BASE64URL.test(text);
}

/** base64url as above, or base64 with padding (RFC 4648 §4), each in its one spelling. @returns null for anything else. */
export function fromCanonicalBase64(text: string): Uint8Array<ArrayBuffer> | null {
  const bytes = fromBase64(text);
  return bytes && (toBase64Url(bytes) === text || toBase64(bytes) === text) ? bytes : null;
}

/** Takes either alphabet, with or without padding. @returns null for anything else. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  const standard = text
    .replaceAll("-", "+")
    .replaceAll("_", "/")
    .replace(/={1,2}$/, "");
  if (!/^[A-Za-z0-9+/]*$/.test(standard) || standard.length % 4 === 1) return null;
  const { fromBase64: decode } = Uint8Array as MaybeNativeConstructor;
  if (decode) return decode.call(Uint8Array, standard);
  const binary = atob(standard);
  const bytes = new Uint8Array(binary.length);
  // Bodies of half a megabyte are decoded here: an iterator would take ten times as long.
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

// Node.js 20 has no such method: there, the garbage collector frees the memory.
type MaybeTransferable = ArrayBuffer & { transfer?: (bytes: number) => ArrayBuffer };

/**
 * Frees the memory of the whole buffer that this is a view of, at once where the runtime can. Garbage collectors free it
 * much later, because they hardly count what is outside of their heap. No other view of the buffer may be used afterwards.
 */
export function freeBytes({ buffer }: Uint8Array<ArrayBuffer>): void {
  (buffer as MaybeTransferable).transfer?.(0);
}
