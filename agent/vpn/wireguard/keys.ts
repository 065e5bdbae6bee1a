/**
 * WireGuard keys (X25519, RFC 7748) as `wg` writes them: 32 bytes in base64. Private keys are generated here and stay on this
 * machine: no request, log line or error message contains one.
 */
import {
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  randomBytes,
  type KeyObject,
} from "node:crypto";

const KEY_BYTES = 32;
/** PKCS #8 (RFC 8410 §7): unlike a JWK, it needs no public key beside the private one. */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b656e04220420", "hex");
const SPKI_PREFIX = Buffer.from("302a300506032b656e032100", "hex");

/** @returns a private key, clamped as RFC 7748 §5 requires and as `wg genkey` prints it. */
export function generatePrivateKey(): string {
  const bytes = randomBytes(KEY_BYTES);
  bytes[0]! &= 248;
  bytes[31] = (bytes[31]! & 127) | 64;
  return bytes.toString("base64");
}

/** @returns the 32 bytes; null for text that is not a key. */
export function parseKey(text: string): Buffer | null {
  const trimmed = text.trim();
  if (!/^[A-Za-z0-9+/]{43}=$/.test(trimmed)) return null;
  const bytes = Buffer.from(trimmed, "base64");
  return bytes.byteLength === KEY_BYTES ? bytes : null;
}

/** @throws Error, without the text in its message, when it is not a key. */
export function derivePublicKey(privateKey: string): string {
  const bytes = parseKey(privateKey);
  if (!bytes) throw new Error("the private key is not 32 bytes in base64");
  return exportPublicKey(toPrivateKeyObject(bytes)).toString("base64");
}

export function toPrivateKeyObject(bytes: Uint8Array): KeyObject {
  const key = Buffer.concat([PKCS8_PREFIX, bytes]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" });
}

export function exportPublicKey(privateKey: KeyObject): Buffer {
  const der = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  return der.subarray(SPKI_PREFIX.byteLength);
}

/** X25519. @returns null for a public key that no honest peer has (RFC 7748 §6.1: the result is zero). */
export function deriveSharedSecret(privateKey: KeyObject, publicKey: Uint8Array): Buffer | null {
  const key = Buffer.concat([SPKI_PREFIX, publicKey]);
  try {
    const remote = createPublicKey({ key, format: "der", type: "spki" });
    return diffieHellman({ privateKey, publicKey: remote });
  } catch {
    return null;
  }
}
