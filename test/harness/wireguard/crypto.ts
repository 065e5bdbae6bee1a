/** WireGuard's cryptographic functions, with the names of its paper (§5.4: wireguard.com/papers/wireguard.pdf). */
import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  randomBytes,
} from "node:crypto";
import { blake2s } from "@noble/hashes/blake2.js";
import { hmac } from "@noble/hashes/hmac.js";

export const KEY_BYTES = 32;
export const AEAD_TAG_BYTES = 16;
export const MAC_BYTES = 16;
export const TIMESTAMP_BYTES = 12;

export interface KeyPair {
  privateKey: Uint8Array;
  publicKey: Uint8Array;
}

export function newKeyPair(): KeyPair {
  return toKeyPair(randomBytes(KEY_BYTES));
}

export function toKeyPair(privateKey: Uint8Array): KeyPair {
  const { x } = createPublicKey(toPrivateKeyObject(privateKey)).export({ format: "jwk" });
  return { privateKey, publicKey: Buffer.from(x ?? "", "base64url") };
}

/** X25519 (RFC 7748). */
export function dh(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array {
  return diffieHellman({
    privateKey: toPrivateKeyObject(privateKey),
    publicKey: createPublicKey({
      key: { kty: "OKP", crv: "X25519", x: toBase64Url(publicKey) },
      format: "jwk",
    }),
  });
}

/** PKCS #8 (RFC 8410 §7): unlike a JWK, it does not require the public key as well. */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b656e04220420", "hex");

function toPrivateKeyObject(privateKey: Uint8Array) {
  const key = Buffer.concat([PKCS8_PREFIX, privateKey]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" });
}

function toBase64Url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}

export function hash(...parts: Uint8Array[]): Uint8Array {
  return blake2s(Buffer.concat(parts));
}

export function mac(key: Uint8Array, bytes: Uint8Array): Uint8Array {
  return blake2s(bytes, { key, dkLen: MAC_BYTES });
}

/** KDF_n of the paper: `count` keys from a chaining key and some input. */
export function deriveKeys(
  chainingKey: Uint8Array,
  input: Uint8Array,
  count: 1 | 2 | 3,
): [Uint8Array, Uint8Array, Uint8Array] {
  const secret = hmac(blake2s, chainingKey, input);
  const keys: Uint8Array[] = [];
  for (let n = 1; n <= count; n += 1)
    keys.push(
      hmac(blake2s, secret, Buffer.concat([keys.at(-1) ?? new Uint8Array(), Buffer.of(n)])),
    );
  return keys as [Uint8Array, Uint8Array, Uint8Array];
}

/** ChaCha20-Poly1305 (RFC 8439) with a nonce of 32 zero bits and a little-endian counter. */
export function encrypt(
  key: Uint8Array,
  counter: number,
  plaintext: Uint8Array,
  additional: Uint8Array = new Uint8Array(),
): Uint8Array {
  const cipher = createCipheriv("chacha20-poly1305", key, toNonce(counter), {
    authTagLength: AEAD_TAG_BYTES,
  });
  cipher.setAAD(additional, { plaintextLength: plaintext.byteLength });
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** @returns null when the bytes were not encrypted with this key and counter. */
export function decrypt(
  key: Uint8Array,
  counter: number,
  bytes: Uint8Array,
  additional: Uint8Array = new Uint8Array(),
): Uint8Array | null {
  if (bytes.byteLength < AEAD_TAG_BYTES) return null;
  const tagAt = bytes.byteLength - AEAD_TAG_BYTES;
  const decipher = createDecipheriv("chacha20-poly1305", key, toNonce(counter), {
    authTagLength: AEAD_TAG_BYTES,
  });
  decipher.setAAD(additional, { plaintextLength: tagAt });
  decipher.setAuthTag(bytes.subarray(tagAt));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, tagAt)), decipher.final()]);
  } catch {
    return null;
  }
}

function toNonce(counter: number): Uint8Array {
  const nonce = Buffer.alloc(12);
  nonce.writeBigUInt64LE(BigInt(counter), 4);
  return nonce;
}

let lastTimestamp = 0n;

/** TAI64N: seconds and nanoseconds, strictly increasing within this process. */
export function timestamp(): Uint8Array {
  const now = BigInt(Date.now()) * 1_000_000n;
  lastTimestamp = now > lastTimestamp ? now : lastTimestamp + 1n;
  const bytes = Buffer.alloc(TIMESTAMP_BYTES);
  bytes.writeBigUInt64BE(0x4000_0000_0000_000an + lastTimestamp / 1_000_000_000n);
  bytes.writeUInt32BE(Number(lastTimestamp % 1_000_000_000n), 8);
  return bytes;
}
