/** Which device speaks on which flow, and when its last handshake was. */
import { FLOWS_PER_PORT_MAX } from "../../protocol/relay/limits.ts";
import {
  INITIATION_BYTES,
  InitiationReader,
  RESPONSE_BYTES,
  WIREGUARD,
  type Initiator,
} from "./wireguard/initiation.ts";
import { BoundedMap } from "../../shared/bounded-map.ts";

export interface DeviceTrackerEvents {
  /** A device speaks on a flow. Called again when it starts a handshake on another flow. */
  onIdentified(flow: number, publicKey: string): void;
  onHandshake(publicKey: string, atMs: number): void;
}

/** Each costs about 200 µs: more than these are left alone, so that a flood costs no more than a fiftieth. */
const READS_PER_SECOND_MAX = 100;
/** WireGuard repeats an initiation after 5 s, and does not accept more than one in 20 ms of a peer. */
const INDICES_MAX = 4 * FLOWS_PER_PORT_MAX;
const DEVICES_MAX = FLOWS_PER_PORT_MAX;

export class DeviceTracker {
  readonly #events: DeviceTrackerEvents;
  readonly #flows = new Map<number, string>();
  /** Flows whose device is not known. A flow is looked up only while there are any. */
  readonly #unidentified = new Map<number, { candidate: string | undefined }>();
  /** The server's index of a session, and the device that the session is with. */
  readonly #indices = new BoundedMap<number, string>(INDICES_MAX);
  readonly #timestamps = new BoundedMap<string, Buffer>(DEVICES_MAX);
  readonly #handshakes = new BoundedMap<string, number>(DEVICES_MAX);
  #reader: InitiationReader | null = null;
  #reads = 0;
  #readsSinceMs = 0;

  constructor(events: DeviceTrackerEvents) {
    this.#events = events;
  }

  /** @param reader with the private key of the server; null when it is not known here. */
  setReader(reader: InitiationReader | null): void {
    this.#reader = reader;
  }

  get hasReader(): boolean {
    return this.#reader !== null;
  }

  /** When the device's last handshake ended, in milliseconds since the epoch. */
  findHandshakeAtMs(publicKey: string): number | undefined {
    return this.#handshakes.get(publicKey);
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

  /** A datagram of a remote client. Runs for each of them. */
  receiveFromClient(flow: number, payload: Buffer): void {
    if (payload[0] === WIREGUARD.data) {
      if (this.#unidentified.size > 0) this.#setCandidate(flow, payload);
    } else if (payload[0] === WIREGUARD.initiation && payload.length === INITIATION_BYTES) {
      this.#readInitiation(flow, payload);
    } else if (payload[0] === WIREGUARD.response && payload.length === RESPONSE_BYTES) {
      this.#recordHandshake(flow);
    }
  }

  /** A datagram of the local server. Runs for each of them. */
  receiveFromServer(flow: number, payload: Buffer): void {
    if (payload[0] === WIREGUARD.data) {
      if (this.#unidentified.size > 0) this.#confirmCandidate(flow);
    } else if (payload[0] === WIREGUARD.response && payload.length === RESPONSE_BYTES) {
      this.#rememberIndex(flow, payload);
      this.#recordHandshake(flow);
    } else if (payload[0] === WIREGUARD.initiation && payload.length === INITIATION_BYTES) {
      this.#rememberIndex(flow, payload);
    }
  }

  /** What `wg show` says: an endpoint of the interface that is one of our sockets. */
  identify(flow: number, publicKey: string): void {
    this.#unidentified.delete(flow);
    if (this.#flows.get(flow) === publicKey) return;
    this.#flows.set(flow, publicKey);
    this.#events.onIdentified(flow, publicKey);
  }

  /** What `wg show` says. */
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

  /** An old initiation, sent again from elsewhere, must not move a device. */
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
    return this.#reads <= READS_PER_SECOND_MAX;
  }

  #recordHandshake(flow: number): void {
    const publicKey = this.#flows.get(flow);
    if (publicKey !== undefined) this.setHandshake(publicKey, Date.now());
  }

  // ── Roaming: a session goes on at a new flow, without a handshake that would name the device ──

  #rememberIndex(flow: number, payload: Buffer): void {
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

  /** The index is visible on the way. That the server answers shows that it accepted the datagram. */
  #confirmCandidate(flow: number): void {
    const candidate = this.#unidentified.get(flow)?.candidate;
    if (candidate !== undefined) this.identify(flow, candidate);
  }
}
