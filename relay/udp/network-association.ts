/** An agent that serves a private network: the public UDP port, its flows, and the transport to the agent. */
import { randomBytes } from "node:crypto";
import type { RemoteInfo, Socket } from "node:dgram";
import { isIP } from "node:net";
import { FLOWS_PER_PORT_MAX, DATAGRAM_HEADER_BYTES } from "../../protocol/relay/limits.ts";
import { toBase64 } from "../../shared/bytes.ts";
import { WebSocketDatagramSender } from "../../sockets/websocket-datagrams.ts";
import { formatHostAndPort, unmapIpv4Address } from "../../shared/hosts.ts";
import type { Flow as FlowMessage, NetworkWelcome } from "../../protocol/relay/control.ts";
import { DATAGRAM, readDatagrams } from "../../protocol/relay/datagrams.ts";
import type { NetworkTicket, RelayTicket } from "../../protocol/relay/ticket.ts";
import type {
  AgentConnection,
  Association,
  AssociationMessage,
  NetworkSummary,
} from "../association.ts";
import type { Metrics } from "../metrics.ts";
import type { NetworkRecord } from "../network-records.ts";
import { DatagramBudget } from "./datagram-budget.ts";
import { toSocketAddress } from "../addresses.ts";
import type { AgentUdpSocket, Binding, UdpAssociation } from "./agent-socket.ts";
import { WireGuardFilter } from "./filter.ts";
import { type FlowTags, NO_TAG } from "./flow-tags.ts";
import { type Flow, type FlowIds, FlowTable } from "./flows.ts";
import { bindUdp, isSendQueueFull } from "./sockets.ts";
import { toBytesPerSecond } from "../../shared/bounds/bandwidth.ts";
import { WIREGUARD } from "../../protocol/relay/wireguard.ts";

/** Without a BIND for this long, three are missing, and datagrams are sent over the WebSocket. */
const BINDING_MAX_AGE_MS = 50_000;
/** For this long, datagrams of a new flow are sent over the WebSocket, after the message that announces the flow. */
const FLOW_ANNOUNCEMENT_MS = 1_000;
const FLOW_SWEEP_INTERVAL_MS = 5_000;
/** The burst beyond the rate: 100 ms of the rate, and never less than the bytes below. */
const RATE_BURST_MS = 100;
const RATE_BURST_MIN_BYTES = 256 * 1024;

/** The largest payload of UDP over IPv4 (RFC 768: 65,535 less the IPv4 and UDP headers), less our header. */
export const DATAGRAM_PAYLOAD_MAX_BYTES = 65_507 - DATAGRAM_HEADER_BYTES;

type PathMessage = Extract<AssociationMessage, { type: "path" }>;

interface NetworkAssociationOptions {
  ticket: NetworkTicket;
  id: number;
  epoch: string;
  /** The address to listen on. */
  bind: string;
  /** The host for remote peers. */
  host: string;
  /** The relay's port for BIND and DATA of agents. */
  udpPort: number;
  connection: AgentConnection;
  agentSocket: AgentUdpSocket;
  flowIds: FlowIds<UdpAssociation>;
  tags: FlowTags;
  metrics: Metrics;
  record: NetworkRecord;
}

export class NetworkAssociation implements Association, UdpAssociation {
  readonly id: number;
  readonly key: Buffer = randomBytes(32);
  binding: Binding | null = null;
  readonly #options: NetworkAssociationOptions;
  readonly #flows: FlowTable<UdpAssociation>;
  readonly #filter: WireGuardFilter;
  readonly #toAgentRate: DatagramBudget;
  readonly #fromAgentRate: DatagramBudget;
  readonly #webSocketSender: WebSocketDatagramSender;
  readonly #metrics: Metrics;
  #ticket: NetworkTicket;
  #socket: Socket | undefined;
  #isIpv6 = false;
  #transport: "udp" | "websocket" = "websocket";
  /** Once the agent has chosen a transport, a BIND alone does not change it: it may be a probe. */
  #isTransportChosen = false;
  #path: PathMessage | undefined;
  #sequence = 0;
  #sweptAtMs = 0;

  constructor(options: NetworkAssociationOptions) {
    const nowMs = Date.now();
    const { ticket, connection } = options;
    this.#options = options;
    this.#metrics = options.metrics;
    this.#ticket = ticket;
    this.id = options.id;
    this.#filter = new WireGuardFilter(Buffer.from(ticket.server_public_key, "base64"), nowMs);
    const { perSecond, burst } = getRate(ticket);
    this.#toAgentRate = new DatagramBudget(perSecond, burst, nowMs);
    this.#fromAgentRate = new DatagramBudget(perSecond, burst, nowMs);
    this.#flows = new FlowTable<UdpAssociation>({
      ids: options.flowIds,
      orgId: ticket.org,
      maxFlows: FLOWS_PER_PORT_MAX,
      getOwner: () => this,
      onClose: (flow) => this.#handleFlowClosed(flow),
    });
    this.#webSocketSender = new WebSocketDatagramSender(connection);
  }

  // ── Called by the control connection ──

  get ticket(): NetworkTicket {
    return this.#ticket;
  }

  get welcome(): NetworkWelcome {
    const { epoch, udpPort, host } = this.#options;
    return {
      type: "welcome",
      kind: "network",
      epoch,
      association: this.id,
      key: toBase64(this.key),
      udpPort,
      publicEndpoint: formatHostAndPort(host, this.#ticket.port),
    };
  }

  async listen(): Promise<void> {
    const socket = await bindUdp(this.#options.bind, this.#ticket.port, {
      metrics: this.#metrics,
      onDatagram: (message, source) => this.#receiveFromPeer(message, source),
    });
    this.#isIpv6 = socket.address().family === "IPv6";
    this.#socket = socket;
    this.#options.agentSocket.add(this);
  }

  handleMessage(message: AssociationMessage): void {
    switch (message.type) {
      case "resume":
        for (const flow of message.flows) this.#resume(message.association, flow);
        return;
      case "device":
        return this.#setDevice(message.flow, message.publicKey);
      case "path":
        this.#path = message;
        this.#chooseTransport(message.transport);
    }
  }

  handleDatagrams(bytes: Buffer): boolean {
    this.#chooseTransport("websocket");
    const nowMs = Date.now();
    return readDatagrams(bytes, ({ type, flow }, payload) => {
      if (type !== DATAGRAM.data) return this.#metrics.countDrop("malformed");
      this.receiveFromAgent(
        flow,
        Buffer.from(payload.buffer, payload.byteOffset, payload.length),
        0,
        nowMs,
      );
    });
  }

  renew(ticket: RelayTicket): void {
    if (ticket.kind !== "network") return;
    this.#ticket = ticket;
    this.#filter.setServerPublicKey(Buffer.from(ticket.server_public_key, "base64"));
    const { perSecond, burst } = getRate(ticket);
    this.#toAgentRate.setRate(perSecond, burst);
    this.#fromAgentRate.setRate(perSecond, burst);
  }

  sweep(nowMs: number): void {
    if (nowMs - this.#sweptAtMs < FLOW_SWEEP_INTERVAL_MS) return;
    this.#sweptAtMs = nowMs;
    this.#flows.closeIdle(nowMs);
  }

  release(): void {
    this.close();
  }

  close(): void {
    if (!this.#socket) return;
    this.#socket.close();
    this.#socket = undefined;
    this.#flows.closeAll();
    this.#options.agentSocket.delete(this);
  }

  get record(): NetworkRecord {
    return this.#options.record;
  }

  getNetworkStatus(nowMs: number): NetworkSummary {
    for (const flow of this.#flows.values()) this.#addTrafficToDevice(flow);
    return {
      networkId: this.#ticket.sub,
      orgId: this.#ticket.org,
      state: this.#getTransport(nowMs),
      latencyMs: this.#path?.latencyMs ?? null,
      loss: this.#path?.loss ?? null,
      lastSeenAtMs: nowMs,
      isLocalListening: this.#path?.isLocalListening ?? null,
      wrongKeyHandshakes: this.record.wrongKeyHandshakes,
    };
  }

  // ── Called by the relay's own UDP port ──

  setBinding(binding: Binding): void {
    this.binding = binding;
    if (!this.#isTransportChosen) this.#transport = "udp";
  }

  receiveFromAgent(id: number, message: Buffer, offset: number, nowMs: number): void {
    const flow = this.#flows.get(id);
    const socket = this.#socket;
    if (!flow || !socket) return this.#metrics.countDrop("unknown_flow");
    const length = message.length - offset;
    const type = this.#filter.recordFromServer(
      offset === 0 ? message : message.subarray(offset),
      nowMs,
    );
    if (type === 0) return this.#metrics.countDrop("not_wireguard");
    flow.isKnownToAgent = true;
    if (flow.state === "unconfirmed" && flow.txBytes + length > flow.rxBytes) {
      return this.#metrics.countDrop("unconfirmed_peer");
    }
    if (!this.#fromAgentRate.take(length, nowMs)) return this.#metrics.countDrop("rate");
    if (isSendQueueFull(socket)) return this.#metrics.countDrop("send_queue");
    if (type === WIREGUARD.transport && flow.state === "unproven") flow.state = "proven";
    trackHandshake(flow, type, "from_server", nowMs);
    flow.txBytes += length;
    this.#metrics.datagramsOut += 1;
    this.#metrics.bytesOut += length;
    socket.send(message, offset, length, flow.port, flow.address);
  }

  // ── Inside ──

  #receiveFromPeer(message: Buffer, { address, port }: RemoteInfo): void {
    const nowMs = Date.now();
    let flow = this.#flows.find(address, port);
    const verdict = this.#filter.checkFromPeer(message, flow, address, nowMs);
    if (typeof verdict === "object") {
      if (verdict.drop === "wrong_mac1") this.#options.record.wrongKeyHandshakes += 1;
      return this.#metrics.countDrop(verdict.drop);
    }
    if (message.length > DATAGRAM_PAYLOAD_MAX_BYTES) return this.#metrics.countDrop("too_large");
    if (!flow) {
      const state = verdict === "pass" ? "unconfirmed" : verdict;
      const opened = this.#flows.open({ address, port, state }, nowMs);
      if (!opened) return this.#metrics.countDrop("flow_limit");
      flow = opened;
      this.#announce(flow);
    } else if (verdict === "confirmed" && flow.state !== "confirmed") {
      flow.state = "confirmed";
      this.#announce(flow);
    }
    flow.lastSeenAtMs = nowMs;
    flow.rxBytes += message.length;
    if (!this.#toAgentRate.take(message.length, nowMs)) return this.#metrics.countDrop("rate");
    trackHandshake(flow, message[0]!, "from_peer", nowMs);
    this.#sendToAgent(flow, message, nowMs);
  }

  #sendToAgent(flow: Flow, message: Buffer, nowMs: number): void {
    const { binding } = this;
    // Over UDP the datagram could overtake the message that announces the flow.
    const isKnown = flow.isKnownToAgent || nowMs - flow.createdAtMs > FLOW_ANNOUNCEMENT_MS;
    if (isKnown && binding && this.#getTransport(nowMs) === "udp") {
      this.#sequence = (this.#sequence + 1) & 0xffff;
      this.#options.agentSocket.sendData(binding, flow.id, this.#sequence, message);
    } else if (!this.#webSocketSender.send(flow.id, message)) {
      return this.#metrics.countDrop("agent_backlog");
    }
    this.#metrics.datagramsIn += 1;
    this.#metrics.bytesIn += message.length;
  }

  #getTransport(nowMs: number): "udp" | "websocket" {
    const { binding } = this;
    const isBound = binding !== null && nowMs - binding.at < BINDING_MAX_AGE_MS;
    return isBound ? this.#transport : "websocket";
  }

  #chooseTransport(transport: "udp" | "websocket"): void {
    this.#transport = transport;
    this.#isTransportChosen = true;
  }

  /** Sends a new flow, or the tag that it has got, to the agent. */
  #announce(flow: Flow): void {
    this.#webSocketSender.flush();
    this.#options.connection.send({ type: "flow", flow: this.#toMessage(flow) });
  }

  #toMessage({ id, address: socketAddress, port, state }: Flow): FlowMessage {
    const address = unmapIpv4Address(socketAddress);
    const networkId = this.#ticket.sub;
    const tag =
      state === "confirmed"
        ? this.#options.tags.create({ association: this.id, networkId, id, address, port })
        : NO_TAG;
    return { id, address, port, tag };
  }

  /** Restores a confirmed flow of an earlier association, which keeps its id and gets a tag of this one. */
  #resume(association: number, { id, address, port, tag }: FlowMessage): void {
    const { tags, flowIds, connection } = this.#options;
    const tagged = { association, networkId: this.#ticket.sub, id, address, port };
    const isValid = isIP(address) !== 0 && port > 0 && tags.verify(tagged, tag);
    if (!isValid || flowIds.find(id) !== undefined) {
      connection.send({ type: "flow_closed", id });
      return;
    }
    const socketAddress = toSocketAddress(address, this.#isIpv6);
    // The WireGuard server knows the local socket of the restored flow, not that of the newer one.
    const newer = this.#flows.find(socketAddress, port);
    if (newer) this.#flows.close(newer);
    const flow = this.#flows.open(
      { address: socketAddress, port, state: "confirmed" },
      Date.now(),
      id,
    );
    if (!flow) {
      connection.send({ type: "flow_closed", id });
      return;
    }
    flow.isKnownToAgent = true;
    this.#announce(flow);
  }

  #handleFlowClosed(flow: Flow): void {
    this.#addTrafficToDevice(flow);
    if (!this.#socket) return;
    this.#webSocketSender.flush();
    this.#options.connection.send({ type: "flow_closed", id: flow.id });
  }

  #setDevice(id: number, publicKey: string): void {
    const flow = this.#flows.get(id);
    if (!flow || flow.device === publicKey) return;
    this.#addTrafficToDevice(flow);
    flow.device = publicKey;
  }

  /** Adds the flow's new traffic to the totals of its device. */
  #addTrafficToDevice(flow: Flow): void {
    if (flow.device === null) return;
    // A handshake, or another address, is a datagram too.
    const isUnchanged =
      flow.rxBytes === flow.attributedRxBytes && flow.txBytes === flow.attributedTxBytes;
    if (isUnchanged) return;
    const device = this.record.change(flow.device);
    device.rxBytes += flow.rxBytes - flow.attributedRxBytes;
    device.txBytes += flow.txBytes - flow.attributedTxBytes;
    flow.attributedRxBytes = flow.rxBytes;
    flow.attributedTxBytes = flow.txBytes;
    const handshakeAtMs = flow.lastHandshakeAtMs;
    if (handshakeAtMs !== null && handshakeAtMs > (device.lastHandshakeAtMs ?? 0)) {
      device.lastHandshakeAtMs = handshakeAtMs;
    }
    if (flow.state !== "unconfirmed" && flow.lastSeenAtMs >= device.endpointSeenAtMs) {
      device.endpoint = formatHostAndPort(unmapIpv4Address(flow.address), flow.port);
      device.endpointSeenAtMs = flow.lastSeenAtMs;
    }
  }
}

/** A handshake is complete with the first transport message of the side that received the response. */
function trackHandshake(
  flow: Flow,
  type: number,
  direction: "from_server" | "from_peer",
  nowMs: number,
): void {
  if (type === WIREGUARD.response) flow.pendingHandshake = direction;
  else if (type === WIREGUARD.transport && flow.pendingHandshake !== null) {
    if (flow.pendingHandshake === direction) return;
    flow.pendingHandshake = null;
    flow.lastHandshakeAtMs = nowMs;
  }
}

function getRate({ mbps }: NetworkTicket): { perSecond: number; burst: number } {
  const perSecond = toBytesPerSecond(mbps);
  return {
    perSecond,
    burst: Math.max(RATE_BURST_MIN_BYTES, (perSecond * RATE_BURST_MS) / 1_000),
  };
}
