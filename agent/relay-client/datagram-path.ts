/** Sends datagrams between agent and relay over UDP where it works, otherwise over the control connection. */
import type { NetworkWelcome } from "../../protocol/relay/control.ts";
import { DATAGRAM, readDatagrams } from "../../protocol/relay/datagrams.ts";
import { UDP_TIMING, UdpPath, type UdpTiming } from "./udp-path.ts";
import type { SocketBuffers } from "./udp-socket.ts";
import { WebSocketDatagramSender, type BinaryLink } from "../../sockets/websocket-datagrams.ts";

export type Transport = "udp" | "websocket";

export interface PathQuality {
  transport: Transport;
  /** Round trip to the relay. */
  latencyMs: number | null;
  /** Share of lost datagrams in the last minute, 0 to 1; null while unknown. */
  loss: number | null;
}

interface DatagramPathEvents {
  /** A datagram from a remote peer. */
  onDatagram(flow: number, payload: Buffer): void;
  /** The transport of an association was decided, or has changed. */
  onTransportChange(transport: Transport): void;
}

export class DatagramPath {
  readonly #events: DatagramPathEvents;
  readonly #webSocket: WebSocketDatagramSender;
  readonly #udp: UdpPath;
  #transport: Transport = "websocket";
  /** Until UDP has answered or its first second has passed, the transport is not reported. */
  #isDecided = false;

  constructor(link: BinaryLink, events: DatagramPathEvents, timing: UdpTiming = UDP_TIMING) {
    this.#events = events;
    this.#webSocket = new WebSocketDatagramSender(link);
    this.#udp = new UdpPath(
      {
        onDatagram: (flow, payload) => this.#events.onDatagram(flow, payload),
        onUsableChange: (isUsable) => this.#switchTo(isUsable ? "udp" : "websocket"),
        onDecided: () => {
          this.#isDecided = true;
          this.#events.onTransportChange(this.#transport);
        },
      },
      timing,
    );
  }

  get quality(): PathQuality {
    const isUdp = this.#transport === "udp";
    return {
      transport: this.#transport,
      latencyMs: isUdp ? this.#udp.latencyMs : null,
      loss: isUdp ? this.#udp.quality.loss : null,
    };
  }

  get buffers(): SocketBuffers | null {
    return this.#udp.buffers;
  }

  /** @param host the control connection's. */
  open(welcome: NetworkWelcome, host: string): void {
    this.#isDecided = false;
    this.#udp.open({
      host,
      port: welcome.udpPort,
      association: welcome.association,
      key: Buffer.from(welcome.key, "base64"),
    });
  }

  close(): void {
    this.#udp.close();
  }

  /** Sends one datagram to a remote peer. Hot path. */
  send(flow: number, payload: Buffer): void {
    if (this.#transport === "udp") this.#udp.send(flow, payload);
    else this.#webSocket.send(flow, payload);
  }

  /** Delivers a binary message of the control connection. @returns false when it is malformed. */
  receive(message: Buffer): boolean {
    return readDatagrams(message, ({ type, flow }, payload) => {
      if (type === DATAGRAM.data) this.#events.onDatagram(flow, payload as Buffer);
    });
  }

  #switchTo(transport: Transport): void {
    if (this.#transport === transport) return;
    // The relay reads a binary message as a sign that UDP is not used: none may follow the change to UDP.
    if (transport === "udp") this.#webSocket.flush();
    this.#transport = transport;
    if (this.#isDecided) this.#events.onTransportChange(transport);
  }
}
