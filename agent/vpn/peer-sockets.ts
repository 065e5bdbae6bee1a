/**
 * Represents remote clients to the local WireGuard server: each client has its own UDP socket, so that WireGuard sees a
 * separate endpoint for each client and answers to the right one.
 */
import { createSocket, type Socket } from "node:dgram";
import { FLOW_IDLE_TIMEOUT_MS, FLOWS_PER_PORT_MAX } from "../../protocol/relay/limits.ts";
import type { Flow, AgentToRelayMessage } from "../../protocol/relay/control.ts";
import { closeSocket, growBuffers } from "../relay-client/udp-socket.ts";
import { toLoopbackAddress } from "./loopback-address.ts";

interface LocalSocketAddress {
  address: string;
  port: number;
}

interface PeerSocketsEvents {
  /** The local WireGuard server sent a datagram to the client of this flow. */
  onDatagram(flow: number, payload: Buffer): void;
  /** Something listens on the server's port, or nothing does any longer. */
  onListeningChange(isListening: boolean): void;
  /** A flow has its socket: the endpoint that WireGuard sees. */
  onOpen?(flow: number, local: LocalSocketAddress): void;
  onClose?(flow: number, local: LocalSocketAddress): void;
}

/** A client's datagrams arrive in bursts. */
const PEER_BUFFER_BYTES = 1024 * 1024;
const SWEEP_INTERVAL_MS = 10_000;
/** UDP may overtake the message that announces a flow: up to this many datagrams wait for it, for this long. */
const EARLY_DATAGRAMS_MAX = 64;
const EARLY_MAX_MS = 500;
/** Flows in one `resume` message: some 120 bytes each. */
const RESUME_FLOWS_MAX = 256;

interface PeerSocket {
  flow: Flow;
  /** The association that the tag of `flow` belongs to: that of the welcome before the relay announced the flow. */
  association: number;
  /** null: it was idle, or could not be bound. The next datagram of the client opens another one. */
  socket: Socket | null;
  /** null until the socket is bound and connected. */
  local: LocalSocketAddress | null;
  /** Datagrams received before the socket was ready. */
  waiting: Buffer[];
  /** By the steady clock, in milliseconds. */
  usedAtMs: number;
}

interface EarlyDatagram {
  flow: number;
  payload: Buffer;
  /** By the steady clock. */
  atMs: number;
}

type Resume = Extract<AgentToRelayMessage, { type: "resume" }>;

export class PeerSockets {
  readonly #events: PeerSocketsEvents;
  readonly #peers = new Map<number, PeerSocket>();
  readonly #sweep: NodeJS.Timeout;
  #early: EarlyDatagram[] = [];
  #port: number;
  #isListening = true;
  /** Datagrams of flows that the relay has not announced. */
  unknownDatagrams = 0;

  /** @param port the local WireGuard server's. */
  constructor(port: number, events: PeerSocketsEvents) {
    this.#port = port;
    this.#events = events;
    this.#sweep = setInterval(() => this.#closeIdleSockets(), SWEEP_INTERVAL_MS);
    this.#sweep.unref();
  }

  get size(): number {
    return this.#peers.size;
  }

  get isListening(): boolean {
    return this.#isListening;
  }

  getFlow(id: number): Flow | undefined {
    return this.#peers.get(id)?.flow;
  }

  /** The server has another port: each client gets a new socket. */
  setPort(port: number): void {
    if (port === this.#port) return;
    this.#port = port;
    for (const peer of this.#peers.values()) {
      if (!peer.socket) continue;
      this.#closeSocket(peer);
      this.#connect(peer);
    }
  }

  // ── Flows, as the relay announces them ──

  open(flow: Flow, association: number): void {
    const known = this.#peers.get(flow.id);
    if (known) {
      known.flow = flow;
      known.association = association;
      return;
    }
    if (this.#peers.size >= FLOWS_PER_PORT_MAX) this.#closeLeastRecentlyUsed();
    const peer: PeerSocket = {
      flow,
      association,
      socket: null,
      local: null,
      waiting: [],
      usedAtMs: performance.now(),
    };
    this.#peers.set(flow.id, peer);
    this.#connect(peer);
    this.#deliverEarly(flow.id);
  }

  /** The relay closed a flow. */
  close(id: number): void {
    const peer = this.#peers.get(id);
    if (!peer) return;
    this.#peers.delete(id);
    this.#closeSocket(peer);
  }

  closeAll(): void {
    clearInterval(this.#sweep);
    for (const id of [...this.#peers.keys()]) this.close(id);
    this.#early = [];
  }

  /** For a relay that restarted or dropped this agent: the flows to continue, with their tags. */
  buildResumeMessages(): Resume[] {
    const byAssociation = new Map<number, Flow[]>();
    for (const { flow, association } of this.#peers.values()) {
      const flows = byAssociation.get(association);
      if (flows) flows.push(flow);
      else byAssociation.set(association, [flow]);
    }
    return [...byAssociation].flatMap(([association, flows]) =>
      Array.from({ length: Math.ceil(flows.length / RESUME_FLOWS_MAX) }, (_, index) => ({
        type: "resume" as const,
        association,
        flows: flows.slice(index * RESUME_FLOWS_MAX, (index + 1) * RESUME_FLOWS_MAX),
      })),
    );
  }

  // ── Datagrams ──

  /** Passes a remote client's datagram to the local WireGuard server. Hot path. */
  deliver(id: number, payload: Buffer): void {
    const peer = this.#peers.get(id);
    if (!peer) return this.#storeEarly(id, payload);
    peer.usedAtMs = performance.now();
    if (peer.local) return peer.socket?.send(payload);
    if (!peer.socket) this.#connect(peer);
    if (peer.waiting.length < EARLY_DATAGRAMS_MAX) peer.waiting.push(payload);
  }

  setListening(isListening: boolean): void {
    if (this.#isListening === isListening) return;
    this.#isListening = isListening;
    this.#events.onListeningChange(isListening);
  }

  #storeEarly(flow: number, payload: Buffer): void {
    const now = performance.now();
    this.#early = this.#early.filter(({ atMs }) => now - atMs < EARLY_MAX_MS);
    if (this.#early.length < EARLY_DATAGRAMS_MAX) this.#early.push({ flow, payload, atMs: now });
    else this.unknownDatagrams += 1;
  }

  #deliverEarly(id: number): void {
    if (this.#early.length === 0) return;
    const oldest = performance.now() - EARLY_MAX_MS;
    const due = this.#early.filter(({ flow, atMs }) => flow === id && atMs > oldest);
    this.#early = this.#early.filter(({ flow }) => flow !== id);
    for (const { payload } of due) this.deliver(id, payload);
  }

  // ── Sockets ──

  #connect(peer: PeerSocket): void {
    const { id, address } = peer.flow;
    const socket = createSocket("udp4");
    peer.socket = socket;
    // After the bind: nothing listens on the server's port. Before: there is no free descriptor or address.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (peer.socket !== socket) return;
      if (error.code === "ECONNREFUSED") this.setListening(false);
      else if (!peer.local) this.#closeSocket(peer);
    });
    socket.on("message", (payload) => {
      peer.usedAtMs = performance.now();
      if (!this.#isListening) this.setListening(true);
      this.#events.onDatagram(id, payload);
    });
    socket.bind({ address: toLoopbackAddress(address), port: 0, exclusive: true }, () => {
      socket.connect(this.#port, "127.0.0.1", (error?: Error) => {
        if (peer.socket !== socket || error) return;
        growBuffers(socket, PEER_BUFFER_BYTES);
        peer.local = socket.address();
        this.#events.onOpen?.(id, peer.local);
        const waiting = peer.waiting.splice(0);
        for (const payload of waiting) socket.send(payload);
      });
    });
  }

  #closeSocket(peer: PeerSocket): void {
    if (peer.socket) closeSocket(peer.socket);
    peer.socket = null;
    if (peer.local) this.#events.onClose?.(peer.flow.id, peer.local);
    peer.local = null;
    peer.waiting = [];
  }

  /** The relay decides when a flow ends: until then its client may send again. */
  #closeIdleSockets(): void {
    const now = performance.now();
    for (const peer of this.#peers.values()) {
      if (now - peer.usedAtMs > FLOW_IDLE_TIMEOUT_MS) this.#closeSocket(peer);
    }
    this.#early = this.#early.filter(({ atMs }) => now - atMs < EARLY_MAX_MS);
  }

  #closeLeastRecentlyUsed(): void {
    let oldest: PeerSocket | undefined;
    for (const peer of this.#peers.values()) {
      if (!oldest || peer.usedAtMs < oldest.usedAtMs) oldest = peer;
    }
    if (oldest) this.close(oldest.flow.id);
  }
}
