/** WireGuard keys of a device (X25519, RFC 7748), generated in the browser. Only the page's memory has the private key. */
import { fromBase64, toBase64 } from "../../../../shared/bytes.ts";

export interface KeyPair {
  /** 32 bytes in base64, as `wg` writes them. */
  privateKey: string;
  publicKey: string;
}

/** @returns null when the browser can't: it has no X25519, or the page was not loaded over HTTPS or from this machine. */
export async function generateKeyPair(): Promise<KeyPair | null> {
  if (!window.isSecureContext) return null;
  try {
    const keys = await crypto.subtle.generateKey("X25519", true, ["deriveBits"]);
    if (!("privateKey" in keys)) return null;
    const { d, x } = await crypto.subtle.exportKey("jwk", keys.privateKey);
    const [privateKey, publicKey] = [fromBase64(d ?? ""), fromBase64(x ?? "")];
    if (!privateKey || !publicKey) return null;
    return { privateKey: toBase64(clamp(privateKey)), publicKey: toBase64(publicKey) };
  } catch (error) {
    if (error instanceof DOMException) return null;
    throw error;
  }
}

/** Clears and sets the bits of RFC 7748 §5, as `wg genkey` does. The public key stays the same. */
function clamp(privateKey: Uint8Array): Uint8Array {
  const bytes = privateKey.slice();
  bytes[0]! &= 248;
  bytes[31] = (bytes[31]! & 127) | 64;
  return bytes;
}
