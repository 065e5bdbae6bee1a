/** The flows of one network's port: a flow is the remote address and port of one WireGuard peer. */
import { FLOW_IDLE_TIMEOUT_MS } from "../../protocol/relay/limits.ts";
import { SourceSlots } from "../../shared/bounds/source-slots.ts";

/** For a peer that started a handshake but has not shown that it receives our responses. */
export const UNCONFIRMED_FLOW_IDLE_MAX_MS = 30_000;

/** Bytes and the last handshake of one peer. */
export interface PeerTraffic {
  /** From and to the peer, in bytes. */
  rxBytes: number;
  txBytes: number;
  /** Milliseconds since the epoch. */
  lastHandshakeAtMs: number | null;
}

/**
 * What the relay knows of a flow's peer:
 *
 * - `unconfirmed`: it has begun a handshake. Its address may be forged.
 * - `unproven`: it has sent data with an unknown index while the association was new, so it may have a session from before.
 * - `proven`: the same, and the server has sent data to it.
 * - `confirmed`: it has used an index that the server sent, in this association or in the one whose tag restored the flow.
 */
export type PeerState = "unconfirmed" | "unproven" | "proven" | "confirmed";

/** The remote peer of a new flow. */
export interface FlowPeer {
  /** In the form of the socket. */
  address: string;
  port: number;
  state: PeerState;
}

export class Flow implements PeerTraffic {
  readonly id: number;
  /** In the form of the socket. */
  readonly address: string;
  readonly port: number;
  rxBytes = 0;
  txBytes = 0;
  lastHandshakeAtMs: number | null = null;
  /** The bytes that are already part of the device's totals. */
  attributedRxBytes = 0;
  attributedTxBytes = 0;
  /** When the peer sent its last datagram. */
  lastSeenAtMs: number;
  readonly createdAtMs: number;
  state: PeerState;
  /** Whether the agent has sent a datagram on it, and so knows it. */
  isKnownToAgent = false;
  /** The sender of a handshake response that no transport message has followed yet. */
  pendingHandshake: "from_server" | "from_peer" | null = null;
  /** Public key of the device in base64, once the agent has sent it. */
  device: string | null = null;

  constructor(id: number, { address, port, state }: FlowPeer, nowMs: number) {
    this.id = id;
    this.address = address;
    this.port = port;
    this.state = state;
    this.createdAtMs = nowMs;
    this.lastSeenAtMs = nowMs;
  }
}

/** The ids of all flows of the relay, and the bound on their number. One organization gets at most half of them. */
export class FlowIds<Owner> {
  readonly #owners = new Map<number, Owner>();
  /** By organization. */
  readonly #slots: SourceSlots;
  readonly #random: () => number;

  /** @param random gives a u32. */
  constructor(maxFlows: number, random: () => number) {
    this.#slots = new SourceSlots(maxFlows);
    this.#random = random;
  }

  get size(): number {
    return this.#owners.size;
  }

  hasRoom(orgId: string): boolean {
    return this.#slots.hasRoom(orgId);
  }

  find(id: number): Owner | undefined {
    return this.#owners.get(id);
  }

  /** @returns an unused id; it is unlikely to have been used before. */
  generate(): number {
    for (;;) {
      const id = this.#random();
      if (!this.#owners.has(id)) return id;
    }
  }

  /** @param id is not in use. */
  add(id: number, owner: Owner, orgId: string): void {
    this.#owners.set(id, owner);
    this.#slots.add(orgId);
  }

  delete(id: number, orgId: string): void {
    if (this.#owners.delete(id)) this.#slots.free(orgId);
  }
}

interface FlowTableOptions<Owner> {
  ids: FlowIds<Owner>;
  /** The organization that the table's port belongs to. */
  orgId: string;
  maxFlows: number;
  /** @returns the owner that is stored with the flow's id. */
  getOwner(flow: Flow): Owner;
  onClose(flow: Flow): void;
}

export class FlowTable<Owner> {
  readonly #options: FlowTableOptions<Owner>;
  readonly #byId = new Map<number, Flow>();
  /** By address, then by port, which needs no new string for each datagram. */
  readonly #byAddress = new Map<string, Map<number, Flow>>();
  /** A cache: consecutive datagrams are often from the same peer. */
  #last: Flow | undefined;

  constructor(options: FlowTableOptions<Owner>) {
    this.#options = options;
  }

  get size(): number {
    return this.#byId.size;
  }

  values(): IterableIterator<Flow> {
    return this.#byId.values();
  }

  get(id: number): Flow | undefined {
    return this.#byId.get(id);
  }

  find(address: string, port: number): Flow | undefined {
    const last = this.#last;
    if (last !== undefined && last.port === port && last.address === address) return last;
    const flow = this.#byAddress.get(address)?.get(port);
    if (flow) this.#last = flow;
    return flow;
  }

  /**
   * Adds a flow; when there are too many, the least useful flow of this table is closed.
   * @param id of a flow that existed before a restart. Default: a new id.
   * @returns null when there is no room.
   */
  open(peer: FlowPeer, nowMs: number, id = this.#options.ids.generate()): Flow | null {
    const { address, port } = peer;
    const { ids, orgId, maxFlows } = this.#options;
    if (this.size >= maxFlows || !ids.hasRoom(orgId)) {
      const victim = this.#findLeastUseful();
      if (!victim) return null;
      this.close(victim);
    }
    const flow = new Flow(id, peer, nowMs);
    this.#byId.set(id, flow);
    let ports = this.#byAddress.get(address);
    if (!ports) this.#byAddress.set(address, (ports = new Map<number, Flow>()));
    ports.set(port, flow);
    ids.add(id, this.#options.getOwner(flow), orgId);
    return flow;
  }

  close(flow: Flow): void {
    this.#byId.delete(flow.id);
    const ports = this.#byAddress.get(flow.address);
    if (ports?.get(flow.port) === flow) ports.delete(flow.port);
    if (ports?.size === 0) this.#byAddress.delete(flow.address);
    if (this.#last === flow) this.#last = undefined;
    this.#options.ids.delete(flow.id, this.#options.orgId);
    this.#options.onClose(flow);
  }

  closeIdle(nowMs: number): void {
    for (const flow of this.#byId.values()) {
      const maxIdleMs =
        flow.state === "unconfirmed" ? UNCONFIRMED_FLOW_IDLE_MAX_MS : FLOW_IDLE_TIMEOUT_MS;
      if (nowMs - flow.lastSeenAtMs > maxIdleMs) this.close(flow);
    }
  }

  closeAll(): void {
    for (const flow of this.#byId.values()) this.close(flow);
  }

  /** Peers that have not shown that they receive our responses come first: their addresses may be forged. */
  #findLeastUseful(): Flow | undefined {
    let victim: Flow | undefined;
    for (const flow of this.#byId.values()) {
      const isUnconfirmed = flow.state === "unconfirmed";
      const isLessUseful =
        victim === undefined ||
        (isUnconfirmed === (victim.state === "unconfirmed")
          ? flow.lastSeenAtMs < victim.lastSeenAtMs
          : isUnconfirmed);
      if (isLessUseful) victim = flow;
    }
    return victim;
  }
}
