/**
 * Serves one private network: carries datagrams between the relay's port and the local WireGuard server. It reconnects
 * whenever the connection is lost; only a rejection that no retry can change ends it.
 */
import { EventEmitter } from "node:events";
import { RELAY_STATUS_INTERVAL_MS } from "../../protocol/relay/limits.ts";
import type { AgentToRelayMessage, Flow, NetworkWelcome } from "../../protocol/relay/control.ts";
import type { PrivateNetwork, RelayAccess } from "../../protocol/schemas/networks.ts";
import { formatHostAndPort } from "../../shared/hosts.ts";
import { RelayControlConnection, type RelayUpdate } from "../relay-client/control-connection.ts";
import { DatagramPath, type PathQuality } from "../relay-client/datagram-path.ts";
import type { SocketBuffers } from "../relay-client/udp-socket.ts";
import type { RejectionError } from "../rejection-error.ts";
import { DeviceTracker } from "./device-tracker.ts";
import type { InitiationReader } from "./wireguard/initiation.ts";
import { PeerSockets } from "./peer-sockets.ts";
import type { NetworkApi } from "./network-api.ts";
import { PortProbe } from "./port-probe.ts";
import { retryWhileUnreachable } from "./retry-while-unreachable.ts";

export interface NetworkAgentOptions {
  api: NetworkApi;
  /** The network's name or id. */
  network: string;
}

export interface NetworkStatus extends PathQuality {
  isLocalListening: boolean;
}

interface ReadyNetwork {
  network: PrivateNetwork;
  /** The relay's `host:port` that remote devices send to. */
  endpoint: string;
  /** Where the agent sends their datagrams: `127.0.0.1:51820`. */
  local: string;
}

interface Events {
  ready: [ReadyNetwork];
  /** Devices reach the network at another `host:port`: the relay's operator has changed its host or its range of ports. */
  moved: [endpoint: string];
  /** The transport, its quality, or whether the local server listens has changed. */
  status: [status: NetworkStatus, previous: NetworkStatus | undefined];
  /** A device was identified by its public key; `endpoint` is its public address. */
  device: [publicKey: string, endpoint: string];
  handshake: [publicKey: string];
  disconnected: [reason: string];
  retrying: [reason: string, inMs: number];
  reconnected: [];
  rejected: [RejectionError];
}

type PathMessage = Extract<AgentToRelayMessage, { type: "path" }>;

export class NetworkAgent extends EventEmitter<Events> {
  readonly devices: DeviceTracker;
  readonly #options: NetworkAgentOptions;
  readonly #onNetwork: (network: PrivateNetwork) => Promise<void>;
  readonly #stop = new AbortController();
  readonly #control: RelayControlConnection;
  readonly #path: DatagramPath;
  readonly #peers: PeerSockets;
  readonly #probe: PortProbe;
  readonly #statusTimer: NodeJS.Timeout;
  /** Each flow by the local socket that WireGuard receives it from: `127.…:port`. */
  readonly #localAddresses = new Map<string, number>();
  #network: PrivateNetwork | undefined;
  #association = 0;
  #isReady = false;
  #isPathKnown = false;
  #sentPath: PathMessage | undefined;
  #status: NetworkStatus | undefined;

  /**
   * @param onNetwork called each time the network's settings are read: the server's key or port may have changed. The agent
   * connects when the first call has ended, because it identifies a device only by a handshake.
   */
  constructor(options: NetworkAgentOptions, onNetwork: (network: PrivateNetwork) => Promise<void>) {
    super();
    this.#options = options;
    this.#onNetwork = onNetwork;
    this.devices = new DeviceTracker({
      onIdentified: (flow, publicKey) => this.#handleIdentified(flow, publicKey),
      onHandshake: (publicKey) => this.emit("handshake", publicKey),
    });
    this.#control = new RelayControlConnection({
      authorities: options.api.authorities,
      getAccess: (signal) => this.#getAccess(signal),
    });
    this.#path = new DatagramPath(this.#control, {
      onDatagram: (flow, payload) => {
        this.devices.receiveFromClient(flow, payload);
        this.#peers.deliver(flow, payload);
      },
      onTransportChange: () => {
        this.#isPathKnown = true;
        this.#reportStatus();
      },
    });
    this.#peers = new PeerSockets(0, {
      onDatagram: (flow, payload) => {
        this.devices.receiveFromServer(flow, payload);
        this.#path.send(flow, payload);
      },
      onListeningChange: () => this.#reportStatus(),
      onOpen: (flow, { address, port }) => {
        this.#localAddresses.set(`${address}:${port}`, flow);
        this.devices.openFlow(flow);
      },
      onClose: (flow, { address, port }) => {
        this.#localAddresses.delete(`${address}:${port}`);
        this.devices.closeFlow(flow);
      },
    });
    this.#probe = new PortProbe((isListening) => this.#peers.setListening(isListening));
    this.#statusTimer = setInterval(() => this.#reportStatus(), RELAY_STATUS_INTERVAL_MS);
    this.#listenToControl();
  }

  get network(): PrivateNetwork | undefined {
    return this.#network;
  }

  get status(): NetworkStatus {
    return { ...this.#path.quality, isLocalListening: this.#peers.isListening };
  }

  get buffers(): SocketBuffers | null {
    return this.#path.buffers;
  }

  /** Serves until `close`, or until the event `rejected`. */
  start(): void {
    void this.#start();
  }

  close(): void {
    this.#stop.abort();
    this.#control.close();
    this.#path.close();
    this.#peers.closeAll();
    this.#probe.stop();
    clearInterval(this.#statusTimer);
  }

  /** @param reader has the server's private key; null: devices are not identified by their handshakes. */
  setInitiationReader(reader: InitiationReader | null): void {
    this.devices.setInitiationReader(reader);
  }

  /** The flow that WireGuard receives from this `address:port`. */
  findFlow(localAddress: string): number | undefined {
    return this.#localAddresses.get(localAddress);
  }

  // ── Connecting ──

  async #start(): Promise<void> {
    const { api, network } = this.#options;
    const { signal } = this.#stop;
    try {
      const found = await retryWhileUnreachable(
        () => api.get(network, signal),
        (reason, inMs) => this.emit("retrying", reason, inMs),
        signal,
      );
      await this.#setNetwork(found);
      if (!signal.aborted) this.#control.start();
    } catch (error) {
      if (!signal.aborted) this.#reject(error as RejectionError);
    }
  }

  #getAccess(signal: AbortSignal): Promise<RelayAccess> {
    return this.#options.api.fetchRelayAccess(this.#network!.id, signal);
  }

  #listenToControl(): void {
    const control = this.#control;
    control.on("welcome", (welcome, access) => {
      if (welcome.kind === "network") this.#handleWelcome(welcome, access);
    });
    control.on("message", (message) => this.#receive(message));
    control.on("binary", (message) => void this.#path.receive(message));
    control.on("disconnected", (reason) => this.emit("disconnected", reason));
    control.on("retrying", (reason, inMs) => this.emit("retrying", reason, inMs));
    control.on("rejected", (rejection) => this.#reject(rejection));
  }

  #handleWelcome(welcome: NetworkWelcome, access: RelayAccess): void {
    // Flows keep the association that their tags are for: the relay may be a new process.
    for (const resume of this.#peers.buildResumeMessages()) this.#control.send(resume);
    this.#association = welcome.association;
    for (const [flow, publicKey] of this.devices.listFlows()) this.#sendDevice(flow, publicKey);
    this.#sentPath = undefined;
    this.#isPathKnown = false;
    this.#path.open(welcome, new URL(access.relay.url).hostname);
    if (this.#isReady) {
      this.emit("reconnected");
    } else {
      this.#isReady = true;
      const network = this.#network!;
      const local = `127.0.0.1:${network.server_listen_port}`;
      this.emit("ready", { network, endpoint: welcome.publicEndpoint, local });
    }
    void this.#readNetwork();
  }

  /** The ticket may have moved the network to another port, and during an interruption another server been registered. */
  async #readNetwork(): Promise<void> {
    const { api } = this.#options;
    const { id } = this.#network!;
    try {
      await this.#setNetwork(await api.get(id, this.#stop.signal));
    } catch {
      // The ticket request finds out whether the network still exists; settings are read again after the next reconnect.
    }
  }

  async #setNetwork(network: PrivateNetwork): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const previous = this.#network;
    this.#network = network;
    const { public_endpoint: endpoint, server_listen_port: port } = network;
    if (previous?.public_endpoint && endpoint && endpoint !== previous.public_endpoint)
      this.emit("moved", endpoint);
    if (port !== null && port !== previous?.server_listen_port) {
      this.#peers.setPort(port);
      this.#probe.start(port);
    }
    await this.#onNetwork(network);
  }

  #reject(rejection: RejectionError): void {
    this.close();
    this.emit("rejected", rejection);
  }

  // ── Messages ──

  #receive(message: RelayUpdate): void {
    switch (message.type) {
      case "flow":
        return this.#openFlow(message.flow);
      case "flow_closed":
        return this.#peers.close(message.id);
      case "open":
        // Only for TCP tunnels.
        return;
    }
  }

  #openFlow(flow: Flow): void {
    const isNew = this.#peers.getFlow(flow.id) === undefined;
    this.#peers.open(flow, this.#association);
    const publicKey = this.devices.findDevice(flow.id);
    if (isNew && publicKey !== undefined) this.#emitDevice(publicKey, flow);
  }

  #handleIdentified(flow: number, publicKey: string): void {
    this.#sendDevice(flow, publicKey);
    const remote = this.#peers.getFlow(flow);
    // UDP may overtake the message that announces the flow.
    if (remote) this.#emitDevice(publicKey, remote);
  }

  #emitDevice(publicKey: string, { address, port }: Flow): void {
    this.emit("device", publicKey, formatHostAndPort(address, port));
  }

  #sendDevice(flow: number, publicKey: string): void {
    this.#control.send({ type: "device", flow, publicKey });
  }

  /** Sends the status to the relay and emits it, when a displayed value has changed. */
  #reportStatus(): void {
    if (!this.#isPathKnown || !this.#control.isConnected) return;
    const status = this.status;
    const message: PathMessage = {
      type: "path",
      transport: status.transport,
      latencyMs: status.latencyMs === null ? null : Math.round(status.latencyMs * 10) / 10,
      loss: status.loss === null ? null : Math.round(status.loss * 10_000) / 10_000,
      isLocalListening: status.isLocalListening,
    };
    if (JSON.stringify(message) === JSON.stringify(this.#sentPath)) return;
    this.#sentPath = message;
    this.#control.send(message);
    const previous = this.#status;
    this.#status = status;
    this.emit("status", status, previous);
  }
}
