/** WireGuard's handshake, Noise_IKpsk2, in both roles (paper §5.4.2 to §5.4.5). */
import {
  AEAD_TAG_BYTES,
  decrypt,
  deriveKeys,
  dh,
  encrypt,
  hash,
  KEY_BYTES,
  mac,
  MAC_BYTES,
  newKeyPair,
  timestamp,
  TIMESTAMP_BYTES,
  type KeyPair,
} from "./crypto.ts";

export const MESSAGE = { initiation: 1, response: 2, cookie: 3, data: 4 } as const;
export const INITIATION_BYTES = 148;
const RESPONSE_BYTES = 92;

const CONSTRUCTION = Buffer.from("Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s");
const IDENTIFIER = Buffer.from("WireGuard v1 zx2c4 Jason@zx2c4.com");
const LABEL_MAC1 = Buffer.from("mac1----");
const MACS_BYTES = 2 * MAC_BYTES;
const EMPTY = new Uint8Array();

/** The keys of one session at one end. */
export interface SessionKeys {
  send: Uint8Array;
  receive: Uint8Array;
}

interface NoiseState {
  chainingKey: Uint8Array;
  hash: Uint8Array;
}

export interface Initiation {
  message: Uint8Array;
  index: number;
  ephemeral: KeyPair;
  state: NoiseState;
}

/** @param index by which the responder addresses this session. */
export function writeInitiation(own: KeyPair, remote: Uint8Array, index: number): Initiation {
  const state = start(remote);
  const ephemeral = newKeyPair();
  const message = Buffer.alloc(INITIATION_BYTES);
  message[0] = MESSAGE.initiation;
  message.writeUInt32LE(index, 4);
  message.set(ephemeral.publicKey, 8);
  mixKey(state, ephemeral.publicKey);
  mixHash(state, ephemeral.publicKey);
  const staticKey = encryptAndHash(state, dh(ephemeral.privateKey, remote), own.publicKey);
  message.set(staticKey, 40);
  message.set(encryptAndHash(state, dh(own.privateKey, remote), timestamp()), 88);
  writeMac1(message, remote);
  return { message, index, ephemeral, state };
}

export interface ReceivedInitiation {
  /** The initiator's public key. */
  publicKey: Uint8Array;
  index: number;
  timestamp: Uint8Array;
  ephemeral: Uint8Array;
  state: NoiseState;
}

/** @returns null when the message is not for this key, or invalid. */
export function readInitiation(own: KeyPair, message: Buffer): ReceivedInitiation | null {
  if (message.byteLength !== INITIATION_BYTES || !verifyMac1(message, own.publicKey)) return null;
  const state = start(own.publicKey);
  const ephemeral = message.subarray(8, 8 + KEY_BYTES);
  mixKey(state, ephemeral);
  mixHash(state, ephemeral);
  const publicKey = decryptAndHash(
    state,
    dh(own.privateKey, ephemeral),
    message.subarray(40, 40 + KEY_BYTES + AEAD_TAG_BYTES),
  );
  if (!publicKey) return null;
  const time = decryptAndHash(
    state,
    dh(own.privateKey, publicKey),
    message.subarray(88, 88 + TIMESTAMP_BYTES + AEAD_TAG_BYTES),
  );
  if (!time) return null;
  return { publicKey, index: message.readUInt32LE(4), timestamp: time, ephemeral, state };
}

/** @param index by which the initiator addresses this session. */
export function writeResponse(
  initiation: ReceivedInitiation,
  index: number,
  presharedKey: Uint8Array,
): { message: Uint8Array; keys: SessionKeys } {
  const state = { ...initiation.state };
  const ephemeral = newKeyPair();
  const message = Buffer.alloc(RESPONSE_BYTES);
  message[0] = MESSAGE.response;
  message.writeUInt32LE(index, 4);
  message.writeUInt32LE(initiation.index, 8);
  message.set(ephemeral.publicKey, 12);
  mixKey(state, ephemeral.publicKey);
  mixHash(state, ephemeral.publicKey);
  mixKey(state, dh(ephemeral.privateKey, initiation.ephemeral));
  mixKey(state, dh(ephemeral.privateKey, initiation.publicKey));
  message.set(encrypt(mixPresharedKey(state, presharedKey), 0, EMPTY, state.hash), 44);
  writeMac1(message, initiation.publicKey);
  const [receive, send] = deriveKeys(state.chainingKey, EMPTY, 2);
  return { message, keys: { send, receive } };
}

/** @returns null when the message does not answer this initiation. */
export function readResponse(
  own: KeyPair,
  initiation: Initiation,
  message: Buffer,
  presharedKey: Uint8Array,
): { index: number; keys: SessionKeys } | null {
  if (message.byteLength !== RESPONSE_BYTES || !verifyMac1(message, own.publicKey)) return null;
  const state = { ...initiation.state };
  const ephemeral = message.subarray(12, 12 + KEY_BYTES);
  mixKey(state, ephemeral);
  mixHash(state, ephemeral);
  mixKey(state, dh(initiation.ephemeral.privateKey, ephemeral));
  mixKey(state, dh(own.privateKey, ephemeral));
  const key = mixPresharedKey(state, presharedKey);
  if (!decrypt(key, 0, message.subarray(44, 44 + AEAD_TAG_BYTES), state.hash)) return null;
  const [send, receive] = deriveKeys(state.chainingKey, EMPTY, 2);
  return { index: message.readUInt32LE(4), keys: { send, receive } };
}

function start(responder: Uint8Array): NoiseState {
  const chainingKey = hash(CONSTRUCTION);
  return { chainingKey, hash: hash(hash(chainingKey, IDENTIFIER), responder) };
}

function mixHash(state: NoiseState, bytes: Uint8Array): void {
  state.hash = hash(state.hash, bytes);
}

function mixKey(state: NoiseState, input: Uint8Array): void {
  [state.chainingKey] = deriveKeys(state.chainingKey, input, 1);
}

function mixPresharedKey(state: NoiseState, presharedKey: Uint8Array): Uint8Array {
  const [chainingKey, addition, key] = deriveKeys(state.chainingKey, presharedKey, 3);
  state.chainingKey = chainingKey;
  mixHash(state, addition);
  return key;
}

function encryptAndHash(state: NoiseState, input: Uint8Array, plaintext: Uint8Array): Uint8Array {
  const [chainingKey, key] = deriveKeys(state.chainingKey, input, 2);
  state.chainingKey = chainingKey;
  const bytes = encrypt(key, 0, plaintext, state.hash);
  mixHash(state, bytes);
  return bytes;
}

function decryptAndHash(
  state: NoiseState,
  input: Uint8Array,
  bytes: Uint8Array,
): Uint8Array | null {
  const [chainingKey, key] = deriveKeys(state.chainingKey, input, 2);
  state.chainingKey = chainingKey;
  const plaintext = decrypt(key, 0, bytes, state.hash);
  mixHash(state, bytes);
  return plaintext;
}

/** mac2 stays zero, as it must while the receiver is not under load (§5.4.4). */
function writeMac1(message: Uint8Array, receiver: Uint8Array): void {
  const at = message.byteLength - MACS_BYTES;
  message.set(mac(hash(LABEL_MAC1, receiver), message.subarray(0, at)), at);
}

function verifyMac1(message: Buffer, receiver: Uint8Array): boolean {
  const at = message.byteLength - MACS_BYTES;
  const expected = mac(hash(LABEL_MAC1, receiver), message.subarray(0, at));
  return message.subarray(at, at + MAC_BYTES).equals(expected);
}
