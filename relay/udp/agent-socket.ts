/**
 * The relay's own UDP port, which all agents of networks share: it receives BIND and DATA, and sends BOUND and
 * DATA (protocol/relay/datagrams.ts). A datagram from an unbound source gets no response.
 */
import type { RemoteInfo, Socket } from "node:dgram";
import { DATAGRAM, readBind, writeBound } from "../../protocol/relay/datagrams.ts";
import { DATAGRAM_HEADER_BYTES } from "../../protocol/relay/limits.ts";
import { unmapIpv4Address } from "../../shared/hosts.ts";
import type { Metrics } from "../metrics.ts";
import { toAddressBytes } from "../addresses.ts";
import type { FlowIds } from "./flows.ts";
import { bindUdp, isSendQueueFull, readUdpBuffers, type UdpBuffers } from "./sockets.ts";

const DATAGRAM_MAX_BYTES = 65_535;

/** The address of an association's agent, from its last BIND. */
export interface Binding {
  /** In the form of the socket. */
  address: string;
  port: number;
  counter: number;
  at: number;
}

/** The agent of a network, as this socket uses it. */
export interface UdpAssociation {
  readonly id: number;
  /** The key of BIND and BOUND. */
  readonly key: Uint8Array;
  readonly binding: Binding | null;
  /** Called for a BIND with a higher counter. */
  setBinding(binding: Binding): void;
  /** Called for a datagram of the bound agent; the payload begins at `offset`. */
  receiveFromAgent(flow: number, message: Buffer, offset: number, nowMs: number): void;
}

export class AgentUdpSocket {
  readonly #agents = new Map<number, UdpAssociation>();
  readonly #flows: FlowIds<UdpAssociation>;
  readonly #metrics: Metrics;
  #socket: Socket | undefined;
  /** Datagrams are assembled here: the kernel has copied them when `send` returns. */
  #outgoing = Buffer.allocUnsafeSlow(DATAGRAM_MAX_BYTES);

  constructor(flows: FlowIds<UdpAssociation>, metrics: Metrics) {
    this.#flows = flows;
    this.#metrics = metrics;
  }

  /** @throws the system's error when the port can't be bound. */
  async listen(bind: string, port: number): Promise<void> {
    this.#socket = await bindUdp(bind, port, {
      metrics: this.#metrics,
      onDatagram: (message, source) => this.#handleDatagram(message, source),
    });
  }

  get buffers(): UdpBuffers | null {
    return this.#socket ? readUdpBuffers(this.#socket) : null;
  }

  close(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }

  add(agent: UdpAssociation): void {
    this.#agents.set(agent.id, agent);
  }

  delete(agent: UdpAssociation): void {
    this.#agents.delete(agent.id);
  }

  /** Sends a datagram of a flow to its agent. Like any datagram it can be dropped. */
  sendData(binding: Binding, flow: number, sequence: number, payload: Buffer): void {
    const socket = this.#socket;
    if (!socket) return;
    const length = DATAGRAM_HEADER_BYTES + payload.length;
    if (isSendQueueFull(socket)) return this.#metrics.countDrop("send_queue");
    const bytes = this.#outgoing;
    bytes[0] = DATAGRAM.data;
    bytes[1] = 0;
    bytes[2] = sequence >>> 8;
    bytes[3] = sequence;
    bytes[4] = flow >>> 24;
    bytes[5] = flow >>> 16;
    bytes[6] = flow >>> 8;
    bytes[7] = flow;
    payload.copy(bytes, DATAGRAM_HEADER_BYTES);
    socket.send(bytes, 0, length, binding.port, binding.address);
    // The kernel did not accept it, so Node.js sends it later, from this memory.
    if (socket.getSendQueueCount() > 0) this.#outgoing = Buffer.allocUnsafeSlow(DATAGRAM_MAX_BYTES);
  }

  #handleDatagram(message: Buffer, source: RemoteInfo): void {
    if (message.length < DATAGRAM_HEADER_BYTES) return this.#metrics.countDrop("malformed");
    const id = message.readUInt32BE(4);
    switch (message[0]) {
      case DATAGRAM.data: {
        const agent = this.#flows.find(id);
        if (!agent) return this.#metrics.countDrop("unknown_flow");
        const { binding } = agent;
        if (binding?.port !== source.port || binding.address !== source.address) {
          return this.#metrics.countDrop("unbound_address");
        }
        return agent.receiveFromAgent(id, message, DATAGRAM_HEADER_BYTES, Date.now());
      }
      case DATAGRAM.bind:
        return this.#handleBind(id, message, source);
      default:
        return this.#metrics.countDrop("malformed");
    }
  }

  #handleBind(association: number, message: Buffer, { address, port }: RemoteInfo): void {
    const agent = this.#agents.get(association);
    const counter = agent && readBind(message, agent.key);
    if (!agent || counter === null || counter === undefined)
      return this.#metrics.countDrop("bad_bind");
    if (counter <= (agent.binding?.counter ?? -1)) return this.#metrics.countDrop("replayed_bind");
    agent.setBinding({ address, port, counter, at: Date.now() });
    const observed = toAddressBytes(unmapIpv4Address(address));
    const bound = writeBound(association, { counter, address: observed, port }, agent.key);
    this.#socket?.send(bound, port, address);
  }
}
