/**
 * Datagrams between this agent and its relay over UDP. BIND keeps the NAT's mapping open and gives the relay a new one; BOUND
 * confirms that both directions work, and measures the latency. One socket carries both, and DATA
 * (protocol/relay/datagrams.ts).
 */
import type { Socket } from "node:dgram";
import { DATAGRAM_HEADER_BYTES } from "../../protocol/relay/limits.ts";
import {
  DATAGRAM,
  readBound,
  readDatagramHeader,
  writeBind,
} from "../../protocol/relay/datagrams.ts";
import { SEQUENCE_BUCKET_MS, SequenceStats, type DatagramQuality } from "./sequence-stats.ts";
import {
  closeSocket,
  connectSocket,
  readBuffers,
  resolveRelay,
  type RelayAddress,
  type SocketBuffers,
} from "./udp-socket.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";

const BIND_INTERVAL_MS = 15_000;
/** A BIND without an answer is repeated after this time, with the next counter. */
const BIND_RETRY_MS = 300;
/** How long the agent waits for the first BOUND before it uses the WebSocket. */
const BIND_START_MAX_MS = 1_000;
/** After this many BINDs in a row without an answer, datagrams go over the WebSocket. */
const BIND_MISSES_MAX = 3;
/** How often UDP is retried while the WebSocket is used. */
const UDP_PROBE_INTERVAL_MS = 30_000;

interface UdpEndpoint {
  host: string;
  port: number;
  association: number;
  /** The key of BIND and BOUND: 32 bytes. */
  key: Uint8Array;
}

interface UdpPathEvents {
  /** @param payload a view into a buffer that is not reused: it may be forwarded asynchronously. */
  onDatagram(flow: number, payload: Buffer): void;
  /** UDP works in both directions, or no longer does. */
  onUsableChange(isUsable: boolean): void;
  /** Called once for each `open`: UDP answered, or `startMaxMs` have passed. */
  onDecided(): void;
}

export interface UdpTiming {
  intervalMs: number;
  retryMs: number;
  startMaxMs: number;
  probeMs: number;
}

export const UDP_TIMING: UdpTiming = {
  intervalMs: BIND_INTERVAL_MS,
  retryMs: BIND_RETRY_MS,
  startMaxMs: BIND_START_MAX_MS,
  probeMs: UDP_PROBE_INTERVAL_MS,
};

/** BINDs whose answer may still arrive. */
const OUTSTANDING_MAX = 16;
/** Headers in use at the same time: a system that can't send a datagram at once holds its buffers for a while. */
const HEADERS = 4_096;

export class UdpPath {
  readonly #events: UdpPathEvents;
  readonly #timing: UdpTiming;
  readonly #stats = new SequenceStats();
  readonly #headers = Array.from({ length: HEADERS }, () => Buffer.alloc(DATAGRAM_HEADER_BYTES));
  readonly #statsTimer: NodeJS.Timeout;
  #target: UdpEndpoint | undefined;
  #socket: Socket | undefined;
  /** A new socket is being opened. */
  #isOpening = false;
  #addresses: RelayAddress[] = [];
  #addressIndex = 0;
  /** When each BIND was sent, by its counter. */
  readonly #outstanding = new BoundedMap<number, number>(OUTSTANDING_MAX);
  #counter = 0;
  /** BINDs in a row without an answer. */
  #misses = 0;
  #bindTimer: NodeJS.Timeout | undefined;
  #startTimer: NodeJS.Timeout | undefined;
  #isUsable = false;
  #latencyMs: number | null = null;
  #sequence = 0;

  constructor(events: UdpPathEvents, timing: UdpTiming) {
    this.#events = events;
    this.#timing = timing;
    this.#statsTimer = setInterval(() => this.#stats.advance(), SEQUENCE_BUCKET_MS);
    this.#statsTimer.unref();
  }

  get isUsable(): boolean {
    return this.#isUsable;
  }

  /** From a BIND to its answer; null before the first answer. */
  get latencyMs(): number | null {
    return this.#latencyMs;
  }

  /** Describes the datagrams from the relay in the last minute. */
  get quality(): DatagramQuality {
    return this.#stats.getQuality();
  }

  /** The socket buffers that the system granted; null without a socket. */
  get buffers(): SocketBuffers | null {
    return this.#socket ? readBuffers(this.#socket) : null;
  }

  /** Starts an association: the host is resolved again, and UDP counts as unusable until it answers. */
  open(target: UdpEndpoint): void {
    this.#target = target;
    this.#stats.restart();
    this.#outstanding.clear();
    this.#misses = 0;
    this.#addresses = [];
    this.#addressIndex = 0;
    this.#setUsable(false);
    clearTimeout(this.#startTimer);
    this.#startTimer = setTimeout(() => this.#decide(), this.#timing.startMaxMs);
    this.#closeSocket();
    this.#countMiss();
    void this.#bindOnNewSocket();
  }

  close(): void {
    this.#target = undefined;
    clearTimeout(this.#startTimer);
    clearTimeout(this.#bindTimer);
    clearInterval(this.#statsTimer);
    this.#closeSocket();
    this.#isUsable = false;
  }

  /** Sends one datagram of a flow. Hot path; a datagram that can't be sent is lost. */
  send(flow: number, payload: Uint8Array): void {
    const socket = this.#socket;
    if (!socket) return;
    const sequence = (this.#sequence + 1) & 0xffff;
    this.#sequence = sequence;
    const header = this.#headers[sequence % HEADERS]!;
    header[0] = DATAGRAM.data;
    header[2] = sequence >>> 8;
    header[3] = sequence;
    header.writeUInt32BE(flow, 4);
    socket.send([header, payload]);
  }

  // ── Datagrams from the relay ──

  #receive(bytes: Buffer): void {
    if (bytes.length < DATAGRAM_HEADER_BYTES) return;
    if (bytes[0] === DATAGRAM.data) {
      this.#stats.count((bytes[2]! << 8) | bytes[3]!);
      this.#events.onDatagram(bytes.readUInt32BE(4), bytes.subarray(DATAGRAM_HEADER_BYTES));
    } else if (bytes[0] === DATAGRAM.bound) {
      this.#receiveBound(bytes);
    }
  }

  #receiveBound(bytes: Buffer): void {
    const target = this.#target;
    if (!target || readDatagramHeader(bytes)?.flow !== target.association) return;
    const bound = readBound(bytes, target.key);
    const sentAtMs = bound && this.#outstanding.get(bound.counter);
    // Late and repeated answers say nothing about the current state.
    if (bound === null || sentAtMs === undefined || sentAtMs === null) return;
    this.#latencyMs = performance.now() - sentAtMs;
    for (const counter of this.#outstanding.keys()) {
      if (counter <= bound.counter) this.#outstanding.delete(counter);
    }
    this.#misses = 0;
    this.#schedule(this.#timing.intervalMs);
    this.#setUsable(true);
    this.#decide();
  }

  // ── BIND ──

  #schedule(inMs: number): void {
    clearTimeout(this.#bindTimer);
    this.#bindTimer = setTimeout(() => this.#bindAgain(), inMs);
  }

  #bindAgain(): void {
    if (this.#misses >= BIND_MISSES_MAX) {
      // UDP is retried later, like the first time.
      this.#misses = 0;
      this.#setUsable(false);
      return this.#schedule(this.#timing.probeMs);
    }
    const misses = this.#misses;
    this.#countMiss();
    if (this.#isOpening) return;
    const isFirstProbe = misses === 0 && !this.#isUsable;
    const isLastTry = misses === BIND_MISSES_MAX - 1;
    // A socket keeps its source address, which no longer works after a change of network.
    if (isFirstProbe || isLastTry || !this.#socket) void this.#bindOnNewSocket();
    else this.#sendBind(this.#socket);
  }

  /** Each BIND counts as missed until its answer arrives. The pauses grow: 1, 2 and 4 times the first one. */
  #countMiss(): void {
    const firstMs = Math.max(this.#timing.retryMs, 2 * (this.#latencyMs ?? 0));
    this.#schedule(firstMs * 2 ** this.#misses);
    this.#misses += 1;
  }

  /** A name server that does not answer counts as a missed BIND too: retries continue, and do not restart. */
  async #bindOnNewSocket(): Promise<void> {
    const target = this.#target;
    if (!target) return;
    this.#isOpening = true;
    const socket = await this.#openSocket(target);
    if (target !== this.#target) return socket ? closeSocket(socket) : undefined;
    this.#isOpening = false;
    if (!socket) return;
    this.#closeSocket();
    this.#socket = socket;
    this.#sendBind(socket);
  }

  async #openSocket(target: UdpEndpoint): Promise<Socket | null> {
    try {
      if (this.#addressIndex >= this.#addresses.length) {
        this.#addresses = await resolveRelay(target.host);
        this.#addressIndex = 0;
      }
    } catch {
      return null;
    }
    const address = this.#addresses[this.#addressIndex];
    if (!address) return null;
    // The next attempt uses the next address, and after the last one resolves the host again.
    this.#addressIndex += 1;
    return connectSocket(address, target.port, (bytes) => this.#receive(bytes));
  }

  #sendBind(socket: Socket): void {
    if (!this.#target) return;
    this.#counter = Math.max(this.#counter + 1, Date.now());
    this.#outstanding.set(this.#counter, performance.now());
    socket.send(writeBind(this.#target.association, this.#counter, this.#target.key));
  }

  #setUsable(isUsable: boolean): void {
    if (this.#isUsable === isUsable) return;
    this.#isUsable = isUsable;
    this.#events.onUsableChange(isUsable);
  }

  #decide(): void {
    if (this.#startTimer === undefined) return;
    clearTimeout(this.#startTimer);
    this.#startTimer = undefined;
    this.#events.onDecided();
  }

  #closeSocket(): void {
    if (this.#socket) closeSocket(this.#socket);
    this.#socket = undefined;
  }
}
