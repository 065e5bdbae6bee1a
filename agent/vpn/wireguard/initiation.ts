/**
 * Identifies the initiator of a WireGuard handshake: the first message (Noise_IKpsk2, WireGuard paper §5.4.2) contains the
 * initiator's public key, encrypted for the server's key.
 */
import { createDecipheriv, type KeyObject } from "node:crypto";
import { blake2s } from "@noble/hashes/blake2.js";
import { hmac } from "@noble/hashes/hmac.js";
import { INITIATION_BYTES, WIREGUARD } from "../../../protocol/relay/wireguard.ts";
import { parseKey, exportPublicKey, deriveSharedSecret, toPrivateKeyObject } from "./keys.ts";

const CHAINING_KEY = blake2s(Buffer.from("Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"));
const IDENTIFIER = Buffer.from("WireGuard v1 zx2c4 Jason@zx2c4.com");
const NONCE = Buffer.alloc(12);
const TAG_BYTES = 16;

// type u8 | 3 zeros | sender u32 | ephemeral 32 | static 32 + 16 | timestamp 12 + 16 | mac1 16 | mac2 16
const EPHEMERAL_AT = 8;
const STATIC_AT = 40;
const TIMESTAMP_AT = 88;
const MAC1_AT = 116;

export interface Initiator {
  /** In base64. */
  publicKey: string;
  /** TAI64N: a later message of the same initiator has a greater timestamp. */
  timestamp: Buffer;
}

export class InitiationReader {
  /** In base64. */
  readonly publicKey: string;
  readonly #privateKey: KeyObject;
  readonly #initialHash: Uint8Array;

  /** @param privateKey the server's, in base64. @throws Error, without the key in its message, when it is not valid. */
  constructor(privateKey: string) {
    const bytes = parseKey(privateKey);
    if (!bytes) throw new Error("the private key is not 32 bytes in base64");
    this.#privateKey = toPrivateKeyObject(bytes);
    const publicKey = exportPublicKey(this.#privateKey);
    this.publicKey = publicKey.toString("base64");
    this.#initialHash = hash(hash(CHAINING_KEY, IDENTIFIER), publicKey);
  }

  /**
   * The public key alone proves nothing, because anyone who has the server's public key can encrypt it. Only the owner of the
   * private key can encrypt the timestamp that follows.
   * @returns null when the message is not an initiation for this server, or forged.
   */
  read(message: Uint8Array): Initiator | null {
    if (message.byteLength !== INITIATION_BYTES || message[0] !== WIREGUARD.initiation) return null;
    const ephemeral = message.subarray(EPHEMERAL_AT, STATIC_AT);
    const encryptedStatic = message.subarray(STATIC_AT, TIMESTAMP_AT);
    const firstSecret = deriveSharedSecret(this.#privateKey, ephemeral);
    if (!firstSecret) return null;
    let transcript = hash(this.#initialHash, ephemeral);
    const [ephemeralChain] = deriveKeys(CHAINING_KEY, ephemeral);
    const [staticChain, staticKey] = deriveKeys(ephemeralChain, firstSecret);
    const publicKey = decrypt(staticKey, encryptedStatic, transcript);
    if (!publicKey) return null;
    transcript = hash(transcript, encryptedStatic);
    const secondSecret = deriveSharedSecret(this.#privateKey, publicKey);
    if (!secondSecret) return null;
    const [, timestampKey] = deriveKeys(staticChain, secondSecret);
    const timestamp = decrypt(timestampKey, message.subarray(TIMESTAMP_AT, MAC1_AT), transcript);
    return timestamp && { publicKey: publicKey.toString("base64"), timestamp };
  }
}

function hash(...parts: Uint8Array[]): Uint8Array {
  return blake2s(Buffer.concat(parts));
}

/** KDF2 of the paper (§5.4). */
function deriveKeys(chainingKey: Uint8Array, input: Uint8Array): [Uint8Array, Uint8Array] {
  const secret = hmac(blake2s, chainingKey, input);
  const first = hmac(blake2s, secret, Buffer.of(1));
  return [first, hmac(blake2s, secret, Buffer.concat([first, Buffer.of(2)]))];
}

function decrypt(key: Uint8Array, bytes: Uint8Array, additional: Uint8Array): Buffer | null {
  const tagAt = bytes.byteLength - TAG_BYTES;
  const options = { authTagLength: TAG_BYTES };
  const decipher = createDecipheriv("chacha20-poly1305", key, NONCE, options);
  decipher.setAAD(additional, { plaintextLength: tagAt });
  decipher.setAuthTag(bytes.subarray(tagAt));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, tagAt)), decipher.final()]);
  } catch {
    return null;
  }
}
