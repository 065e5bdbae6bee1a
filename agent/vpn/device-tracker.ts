/** Which device uses which flow, and when its last handshake was. */
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { FLOWS_PER_PORT_MAX } from "../../protocol/relay/limits.ts";
import { INITIATION_BYTES, RESPONSE_BYTES, WIREGUARD } from "../../protocol/relay/wireguard.ts";
import { InitiationReader, type Initiator } from "./wireguard/initiation.ts";

interface DeviceTrackerEvents {
  /** A device uses this flow. Called again when it starts a handshake on another flow. */
  onIdentified(flow: number, publicKey: string): void;
  onHandshake(publicKey: string, atMs: number): void;
}

/** Reading one costs about 200 µs. Further ones are ignored, so that a flood costs at most 2 % of a CPU. */
const INITIATIONS_PER_SECOND_MAX = 100;
/** WireGuard repeats an initiation after 5 s, and accepts at most one per 20 ms from a peer. */
const INDICES_MAX = 4 * FLOWS_PER_PORT_MAX;
const DEVICES_MAX = FLOWS_PER_PORT_MAX;
/** More than the relay keeps open: a datagram may arrive after the message that closes its flow. */
export const IDENTIFIED_FLOWS_MAX = 2 * FLOWS_PER_PORT_MAX;

export class DeviceTracker {
  readonly #events: DeviceTrackerEvents;
  readonly #flows = new BoundedMap<number, string>(IDENTIFIED_FLOWS_MAX);
  /** Flows whose device is not known. Data is inspected only while there are any. */
  readonly #unidentified = new Map<number, { candidate: string | undefined }>();
  /** The device of each session, by the server's index of the session. */
  readonly #indices = new BoundedMap<number, string>(INDICES_MAX);
  readonly #timestamps = new BoundedMap<string, Buffer>(DEVICES_MAX);
  readonly #handshakes = new BoundedMap<string, number>(DEVICES_MAX);
  #reader: InitiationReader | null = null;
  #reads = 0;
  #readsSinceMs = 0;

  constructor(events: DeviceTrackerEvents) {
    this.#events = events;
  }

  /** @param reader has the server's private key; null when this machine does not have it. */
  setInitiationReader(reader: InitiationReader | null): void {
    this.#reader = reader;
  }

  /** When the device's last handshake ended, in milliseconds since the epoch. */
  findHandshakeAtMs(publicKey: string): number | undefined {
    return this.#handshakes.get(publicKey);
  }

  /** @returns the public key of the device that uses this flow. */
  findDevice(flow: number): string | undefined {
    return this.#flows.get(flow);
  }

  /** Every flow whose device is known. */
  listFlows(): [flow: number, publicKey: string][] {
    return [...this.#flows];
  }

  openFlow(flow: number): void {
    if (this.#reader && !this.#flows.has(flow)) {
      this.#unidentified.set(flow, { candidate: undefined });
    }
  }

  closeFlow(flow: number): void {
    this.#flows.delete(flow);
    this.#unidentified.delete(flow);
  }

  /** Handles a datagram of a remote client. Hot path. */
  receiveFromClient(flow: number, payload: Buffer): void {
    if (payload[0] === WIREGUARD.transport) {
      if (this.#unidentified.size > 0) this.#setCandidate(flow, payload);
    } else if (payload[0] === WIREGUARD.initiation && payload.length === INITIATION_BYTES) {
      this.#readInitiation(flow, payload);
    } else if (payload[0] === WIREGUARD.response && payload.length === RESPONSE_BYTES) {
      this.#recordHandshake(flow);
    }
  }

  /** Handles a datagram of the local server. Hot path. */
  receiveFromServer(flow: number, payload: Buffer): void {
    if (payload[0] === WIREGUARD.transport) {
      if (this.#unidentified.size > 0) this.#confirmCandidate(flow);
    } else if (payload[0] === WIREGUARD.response && payload.length === RESPONSE_BYTES) {
      this.#storeIndex(flow, payload);
      this.#recordHandshake(flow);
    } else if (payload[0] === WIREGUARD.initiation && payload.length === INITIATION_BYTES) {
      this.#storeIndex(flow, payload);
    }
  }

  /** A device was found on a flow: by its handshake, or by `wg show`. */
  identify(flow: number, publicKey: string): void {
    this.#unidentified.delete(flow);
    if (this.#flows.get(flow) === publicKey) return;
    this.#flows.set(flow, publicKey);
    this.#events.onIdentified(flow, publicKey);
  }

  /** A handshake was completed, or `wg show` reports one. */
  setHandshake(publicKey: string, atMs: number): void {
    if (atMs <= (this.#handshakes.get(publicKey) ?? 0)) return;
    this.#handshakes.set(publicKey, atMs);
    this.#events.onHandshake(publicKey, atMs);
  }

  #readInitiation(flow: number, payload: Buffer): void {
    if (!this.#reader || !this.#canRead()) return;
    const initiator = this.#reader.read(payload);
    if (!initiator || !this.#isNewest(initiator)) return;
    this.identify(flow, initiator.publicKey);
  }

  /** An old initiation that is replayed from elsewhere must not move a device. */
  #isNewest({ publicKey, timestamp }: Initiator): boolean {
    const last = this.#timestamps.get(publicKey);
    if (last && Buffer.compare(timestamp, last) <= 0) return false;
    this.#timestamps.set(publicKey, timestamp);
    return true;
  }

  #canRead(): boolean {
    const now = performance.now();
    if (now - this.#readsSinceMs >= 1_000) {
      this.#readsSinceMs = now;
      this.#reads = 0;
    }
    this.#reads += 1;
    return this.#reads <= INITIATIONS_PER_SECOND_MAX;
  }

  #recordHandshake(flow: number): void {
    const publicKey = this.#flows.get(flow);
    if (publicKey !== undefined) this.setHandshake(publicKey, Date.now());
  }

  // ── Roaming: a session continues on a new flow, without a handshake that would identify the device ──

  #storeIndex(flow: number, payload: Buffer): void {
    const publicKey = this.#flows.get(flow);
    if (publicKey !== undefined) {
      this.#indices.set(payload.readUInt32LE(4), publicKey);
    }
  }

  #setCandidate(flow: number, payload: Buffer): void {
    const entry = this.#unidentified.get(flow);
    if (!entry || entry.candidate !== undefined || payload.length < 8) return;
    entry.candidate = this.#indices.get(payload.readUInt32LE(4));
  }

  /** Anyone on the path can see the index. Only the server's answer shows that it accepted the datagram. */
  #confirmCandidate(flow: number): void {
    const candidate = this.#unidentified.get(flow)?.candidate;
    if (candidate !== undefined) this.identify(flow, candidate);
  }
}
