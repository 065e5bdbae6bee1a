/** The unencrypted fields of a WireGuard datagram (https://www.wireguard.com/protocol/): type, length, indices, mac1. */
import { blake2s } from "@noble/hashes/blake2.js";
import { equalBytesInConstantTime } from "../../shared/constant-time.ts";
import { concatBytes, toUtf8 } from "../../shared/bytes.ts";
import { INITIATION_BYTES, RESPONSE_BYTES, WIREGUARD } from "../../protocol/relay/wireguard.ts";

const COOKIE_BYTES = 64;
/** Header and the tag of an empty packet, which is a keepalive. */
const TRANSPORT_MIN_BYTES = 32;

const MAC1_AT = INITIATION_BYTES - 32;
const MAC_BYTES = 16;
const MAC1_LABEL = toUtf8("mac1----");

/** @returns one of `WIREGUARD`, or 0 when type and length do not match. */
export function getMessageType(message: Uint8Array): number {
  const { byteLength } = message;
  // Three reserved bytes follow the type and are zero.
  if (byteLength < TRANSPORT_MIN_BYTES || message[1] !== 0 || message[2] !== 0 || message[3] !== 0)
    return 0;
  switch (message[0]) {
    // Implementations pad differently, so the length modulo 16 is not checked.
    case WIREGUARD.transport:
      return WIREGUARD.transport;
    case WIREGUARD.initiation:
      return byteLength === INITIATION_BYTES ? WIREGUARD.initiation : 0;
    case WIREGUARD.response:
      return byteLength === RESPONSE_BYTES ? WIREGUARD.response : 0;
    case WIREGUARD.cookie:
      return byteLength === COOKIE_BYTES ? WIREGUARD.cookie : 0;
    default:
      return 0;
  }
}

/** @returns the sender index of an initiation or a response, which the reply must use. */
export function getSenderIndex(message: Uint8Array): number {
  return readU32(message, 4);
}

/** @returns the receiver index of a response, a cookie or a transport message. */
export function getReceiverIndex(message: Uint8Array, type: number): number {
  return readU32(message, type === WIREGUARD.response ? 8 : 4);
}

/** Little-endian. */
function readU32(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
  );
}

/** The key of mac1 for a server: HASH("mac1----" || its public key). */
export function getMac1Key(serverPublicKey: Uint8Array): Uint8Array {
  return blake2s(concatBytes([MAC1_LABEL, serverPublicKey]), { dkLen: 32 });
}

/** Whether the sender of an initiation knows the server's public key. */
export function verifyMac1(initiation: Uint8Array, key: Uint8Array): boolean {
  const expected = blake2s(initiation.subarray(0, MAC1_AT), { key, dkLen: MAC_BYTES });
  return equalBytesInConstantTime(expected, initiation.subarray(MAC1_AT, MAC1_AT + MAC_BYTES));
}
