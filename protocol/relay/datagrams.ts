/**
 * Datagrams between an agent and its relay (docs/protocols/relay-protocol.md), over UDP or inside binary WebSocket
 * messages. Numbers are big-endian.
 *
 *     type u8 | flags u8 | u16 | flow u32 | payload
 *
 * The u16 is a sequence number over UDP, so that loss and reordering can be measured, and the payload's
 * length inside a WebSocket message, which carries one or more datagrams.
 */
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { equalBytesInConstantTime } from "../../shared/constant-time.ts";
import { DATAGRAM_HEADER_BYTES, RELAY_MAC_BYTES } from "./limits.ts";

/** BIND is padded to this, and BOUND is never longer, so that the relay can't be used for amplification. */
export const BIND_BYTES = 64;

/** Offered and accepted in `Sec-WebSocket-Protocol` of an agent's control connection. */
export const RELAY_SUBPROTOCOL = "underpass-relay.v1";
/** The token of the HTTP Upgrade (RFC 9110 §7.8) that opens a data connection for one TCP visitor. */
export const DATA_CONNECTION_UPGRADE = "underpass-stream.v1";

export const DATAGRAM = {
  /** A WireGuard datagram of one flow, either way. */
  data: 0x10,
  /** Agent to relay: "send datagrams of this association to the source address of this one". */
  bind: 0x11,
  /** The relay's response. */
  bound: 0x12,
} as const;

interface DatagramHeader {
  type: number;
  /** Sequence number over UDP, payload length in a WebSocket message. */
  sequenceOrLength: number;
  /** The remote peer; for BIND and BOUND the association. */
  flow: number;
}

/** Writes a header into the first `DATAGRAM_HEADER_BYTES` of `bytes` from `at` on. */
export function writeDatagramHeader(bytes: Uint8Array, at: number, header: DatagramHeader): void {
  bytes[at] = header.type;
  bytes[at + 1] = 0;
  writeU16(bytes, at + 2, header.sequenceOrLength);
  writeU32(bytes, at + 4, header.flow);
}

/** @returns null when the bytes are too short for a header. */
export function readDatagramHeader(bytes: Uint8Array, at = 0): DatagramHeader | null {
  if (bytes.byteLength - at < DATAGRAM_HEADER_BYTES) return null;
  return {
    type: bytes[at]!,
    sequenceOrLength: readU16(bytes, at + 2),
    flow: readU32(bytes, at + 4),
  };
}

/**
 * Splits a binary WebSocket message into its datagrams. `payload` is a view: copy it to use it after the call.
 * @returns false when the message is not a sequence of whole datagrams; those before the error were delivered.
 */
export function readDatagrams(
  message: Uint8Array,
  deliver: (header: DatagramHeader, payload: Uint8Array) => void,
): boolean {
  let at = 0;
  while (at < message.byteLength) {
    const header = readDatagramHeader(message, at);
    if (!header) return false;
    const start = at + DATAGRAM_HEADER_BYTES;
    if (header.sequenceOrLength > message.byteLength - start) return false;
    deliver(header, message.subarray(start, start + header.sequenceOrLength));
    at = start + header.sequenceOrLength;
  }
  return true;
}

// ── BIND and BOUND ──
//
//     header (flow = association) | counter u64 | MAC of header and counter, 16 bytes | zeros up to 64
//     header (flow = association) | counter u64 | address, 16 bytes | port u16 | MAC of all before, 16 bytes

const BIND_SIGNED_BYTES = DATAGRAM_HEADER_BYTES + 8;
const BOUND_SIGNED_BYTES = BIND_SIGNED_BYTES + 16 + 2;

/** @param counter greater than in all earlier BINDs of this association. */
export function writeBind(association: number, counter: number, key: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(BIND_BYTES);
  writeDatagramHeader(bytes, 0, { type: DATAGRAM.bind, sequenceOrLength: 0, flow: association });
  writeCounter(bytes, DATAGRAM_HEADER_BYTES, counter);
  bytes.set(computeRelayMac(key, bytes.subarray(0, BIND_SIGNED_BYTES)), BIND_SIGNED_BYTES);
  return bytes;
}

/** @returns the counter; null when the MAC is wrong or the length is not BIND's. */
export function readBind(bytes: Uint8Array, key: Uint8Array): number | null {
  if (bytes.byteLength !== BIND_BYTES) return null;
  const mac = bytes.subarray(BIND_SIGNED_BYTES, BIND_SIGNED_BYTES + RELAY_MAC_BYTES);
  if (!equalBytesInConstantTime(computeRelayMac(key, bytes.subarray(0, BIND_SIGNED_BYTES)), mac))
    return null;
  return readCounter(bytes, DATAGRAM_HEADER_BYTES);
}

/** The relay's response to a BIND. */
interface BoundDatagram {
  /** The counter of the BIND. */
  counter: number;
  /** The source address of the BIND: 16 bytes, IPv4 as `::ffff:a.b.c.d`. */
  address: Uint8Array;
  port: number;
}

export function writeBound(
  association: number,
  { counter, address, port }: BoundDatagram,
  key: Uint8Array,
): Uint8Array {
  const bytes = new Uint8Array(BOUND_SIGNED_BYTES + RELAY_MAC_BYTES);
  writeDatagramHeader(bytes, 0, { type: DATAGRAM.bound, sequenceOrLength: 0, flow: association });
  writeCounter(bytes, DATAGRAM_HEADER_BYTES, counter);
  bytes.set(address, BIND_SIGNED_BYTES);
  writeU16(bytes, BIND_SIGNED_BYTES + 16, port);
  bytes.set(computeRelayMac(key, bytes.subarray(0, BOUND_SIGNED_BYTES)), BOUND_SIGNED_BYTES);
  return bytes;
}

/** @returns null when the MAC is wrong or the length is not BOUND's. */
export function readBound(bytes: Uint8Array, key: Uint8Array): BoundDatagram | null {
  if (bytes.byteLength !== BOUND_SIGNED_BYTES + RELAY_MAC_BYTES) return null;
  const mac = bytes.subarray(BOUND_SIGNED_BYTES);
  if (!equalBytesInConstantTime(computeRelayMac(key, bytes.subarray(0, BOUND_SIGNED_BYTES)), mac))
    return null;
  return {
    counter: readCounter(bytes, DATAGRAM_HEADER_BYTES),
    address: bytes.slice(BIND_SIGNED_BYTES, BIND_SIGNED_BYTES + 16),
    port: readU16(bytes, BIND_SIGNED_BYTES + 16),
  };
}

/** HMAC-SHA-256 (RFC 2104), truncated to `RELAY_MAC_BYTES`. */
function computeRelayMac(key: Uint8Array, bytes: Uint8Array): Uint8Array {
  return hmac(sha256, key, bytes).subarray(0, RELAY_MAC_BYTES);
}

function writeU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 8;
  bytes[at + 1] = value;
}

function readU16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

function writeU32(bytes: Uint8Array, at: number, value: number): void {
  writeU16(bytes, at, value >>> 16);
  writeU16(bytes, at + 2, value & 0xffff);
}

function readU32(bytes: Uint8Array, at: number): number {
  return ((readU16(bytes, at) << 16) | readU16(bytes, at + 2)) >>> 0;
}

/** A u64 whose upper bits stay zero: milliseconds since the epoch fit. */
function writeCounter(bytes: Uint8Array, at: number, counter: number): void {
  writeU32(bytes, at, Math.floor(counter / 2 ** 32));
  writeU32(bytes, at + 4, counter % 2 ** 32);
}

function readCounter(bytes: Uint8Array, at: number): number {
  return readU32(bytes, at) * 2 ** 32 + readU32(bytes, at + 4);
}
