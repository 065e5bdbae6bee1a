/** Which device uses which flow: read from handshakes of a real WireGuard peer. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { DeviceTracker, IDENTIFIED_FLOWS_MAX } from "../../../../agent/vpn/device-tracker.ts";
import { InitiationReader } from "../../../../agent/vpn/wireguard/initiation.ts";
import {
  derivePublicKey,
  generatePrivateKey,
  parseKey,
} from "../../../../agent/vpn/wireguard/keys.ts";
import { newKeyPair, toKeyPair } from "../../../harness/wireguard/crypto.ts";
import {
  readInitiation,
  writeInitiation,
  writeResponse,
} from "../../../harness/wireguard/handshake.ts";

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
const server = toKeyPair(Buffer.from(generatePrivateKey(), "base64"));
const device = newKeyPair();
const publicKey = base64(device.publicKey);
const initiate = (index = 1, from = device) =>
  Buffer.from(writeInitiation(from, server.publicKey, index).message);

describe("the first message of a handshake", () => {
  const reader = new InitiationReader(base64(server.privateKey));

  test("identifies its sender to the server's key", () => {
    const initiator = reader.read(initiate());
    expect(initiator?.publicKey).toBe(publicKey);
    expect(initiator?.timestamp.byteLength).toBe(12);
    expect(reader.publicKey).toBe(base64(server.publicKey));
  });

  test("identifies nothing to another key, when it was changed, or when it is not an initiation", () => {
    const other = new InitiationReader(generatePrivateKey());
    expect(other.read(initiate())).toBe(null);
    for (const at of [8, 40, 90, 115]) {
      const changed = initiate();
      changed[at]! ^= 1;
      expect(reader.read(changed)).toBe(null);
    }
    expect(reader.read(initiate().subarray(1))).toBe(null);
    expect(reader.read(Buffer.alloc(148))).toBe(null);
    const zeroEphemeral = initiate().fill(0, 8, 40);
    expect(reader.read(zeroEphemeral)).toBe(null);
  });

  test("with a device's public key, but another private key, identifies nothing", () => {
    const forger = { privateKey: newKeyPair().privateKey, publicKey: device.publicKey };
    expect(reader.read(initiate(1, forger))).toBe(null);
  });
});

describe("a device", () => {
  let tracker: DeviceTracker;
  let identified: [number, string][];

  beforeEach(() => {
    identified = [];
    tracker = new DeviceTracker({
      onIdentified: (...found) => identified.push(found),
      onHandshake: () => undefined,
    });
    tracker.setInitiationReader(new InitiationReader(base64(server.privateKey)));
    tracker.openFlow(1);
  });

  /** A whole handshake on a flow. @returns the server's index. */
  function handshake(flow: number): number {
    const message = initiate();
    tracker.receiveFromClient(flow, message);
    const response = writeResponse(readInitiation(server, message)!, 77, new Uint8Array(32));
    tracker.receiveFromServer(flow, Buffer.from(response.message));
    return 77;
  }
  function data(index: number): Buffer {
    const message = Buffer.alloc(64);
    message[0] = 4;
    message.writeUInt32LE(index, 4);
    return message;
  }

  test("is identified by its handshake, whose time is recorded", () => {
    const before = Date.now();
    tracker.receiveFromClient(1, initiate());
    expect(tracker.findHandshakeAtMs(publicKey)).toBe(undefined);
    handshake(1);
    expect(identified).toEqual([[1, publicKey]]);
    expect(tracker.findHandshakeAtMs(publicKey)).toBeGreaterThanOrEqual(before);
    expect(tracker.listFlows()).toEqual([[1, publicKey]]);
  });

  test("that roams is identified on its new flow once the server answers there, and not before", () => {
    const index = handshake(1);
    tracker.openFlow(2);
    tracker.receiveFromClient(2, data(index));
    expect(identified).toHaveLength(1);
    tracker.receiveFromServer(2, data(5));
    expect(identified).toEqual([
      [1, publicKey],
      [2, publicKey],
    ]);
    // An attacker who only saw the index.
    tracker.openFlow(3);
    tracker.receiveFromServer(3, data(5));
    expect(identified).toHaveLength(2);
  });

  test("is not moved by an old handshake that is replayed from elsewhere", () => {
    const old = initiate();
    tracker.receiveFromClient(1, old);
    tracker.openFlow(2);
    tracker.receiveFromClient(2, old);
    expect(identified).toEqual([[1, publicKey]]);
  });

  test("of a closed flow is removed", () => {
    handshake(1);
    tracker.closeFlow(1);
    expect(tracker.listFlows()).toEqual([]);
  });

  test("is remembered for a bounded number of flows, also when their ends are not noticed", () => {
    for (let flow = 0; flow <= IDENTIFIED_FLOWS_MAX; flow += 1) tracker.identify(flow, publicKey);
    expect(tracker.listFlows()).toHaveLength(IDENTIFIED_FLOWS_MAX);
    expect(tracker.findDevice(IDENTIFIED_FLOWS_MAX)).toBe(publicKey);
  });

  test("is searched for in at most 100 messages a second", () => {
    const reader = new InitiationReader(base64(server.privateKey));
    const read = vi.spyOn(reader, "read");
    tracker.setInitiationReader(reader);
    const startedAtMs = performance.now();
    for (let n = 0; n < 20_000; n += 1) tracker.receiveFromClient(1, Buffer.alloc(148, 1));
    const seconds = Math.ceil((performance.now() - startedAtMs) / 1_000);
    expect(read.mock.calls.length).toBeGreaterThan(0);
    expect(read.mock.calls.length).toBeLessThanOrEqual(100 * (seconds + 1));
  });
});

describe("keys", () => {
  test("are valid WireGuard keys", () => {
    const privateKey = generatePrivateKey();
    const bytes = parseKey(privateKey)!;
    // Clamped as RFC 7748 §5 requires: `wg` prints the same key.
    expect([bytes[0]! & 7, bytes[31]! & 0xc0]).toEqual([0, 0x40]);
    expect(derivePublicKey(privateKey)).toBe(base64(toKeyPair(bytes).publicKey));
  });

  test.each(["", "short", "A".repeat(44), "-".repeat(43) + "=", "A".repeat(42) + "=="])(
    "that are not 32 bytes in base64 are refused, and not repeated in the error: %s",
    (text) => {
      expect(parseKey(text)).toBe(null);
      expect(() => derivePublicKey(text)).toThrow(/^the private key is not 32 bytes in base64$/);
    },
  );
});
