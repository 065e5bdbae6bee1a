/** Serves a network: its agent, the names of its devices, and with `--apply` the peers of the WireGuard interface. */
import { EventEmitter } from "node:events";
import type { Device, PrivateNetwork } from "../../protocol/schemas/networks.ts";
import { RetryableError } from "../service-api.ts";
import { explainError } from "../error-message.ts";
import { SettingsError } from "../settings-error.ts";
import { RejectionError } from "../rejection-error.ts";
import type { AppliedPeers } from "./server/applied-peers.ts";
import { PeerApplier } from "./server/peer-applier.ts";
import { DeviceList } from "./device-list.ts";
import { InitiationReader } from "./wireguard/initiation.ts";
import { InterfaceWatch } from "./interface-watch.ts";
import { NetworkAgent, type NetworkAgentOptions } from "./network-agent.ts";
import { findInterface, listInterfaces, ToolError } from "./wireguard/tools.ts";
import { MINUTE_MS } from "../../shared/time.ts";

interface SessionOptions extends NetworkAgentOptions {
  /** The server's private key in base64; null when this machine does not have it. */
  findPrivateKey(network: PrivateNetwork): Promise<string | null>;
  /** For `--apply`; null: the interface's peers are not changed. */
  apply: {
    interfaceName: string | undefined;
    createAppliedPeers: (network: PrivateNetwork) => AppliedPeers;
    /** Writes the current peers into the configuration file. */
    refreshConfig: (network: PrivateNetwork, signal: AbortSignal) => Promise<unknown>;
  } | null;
}

interface Events {
  /** A message for the operator, who may have to act on it. */
  notice: [message: string];
  devices: [readonly Device[]];
  /** A device sends from this public address; undefined: one that is not in the network's list. */
  device: [device: Device | undefined, publicKey: string, endpoint: string];
}

/** An interface that was restarted has its peers again within this time. */
const REAPPLY_INTERVAL_MS = MINUTE_MS;
const PENDING_MAX = 100;
/** Smaller buffers overflow within some 10 ms at 300 Mbit/s. */
const BUFFER_MIN_BYTES = 512 * 1024;
const LIST_INTERVAL_MS = 30_000;
/** With `--apply` a new device can connect within this time. */
const APPLY_INTERVAL_MS = 5_000;

export class VpnSession extends EventEmitter<Events> {
  readonly agent: NetworkAgent;
  readonly #options: SessionOptions;
  readonly #list: DeviceList;
  readonly #watch: InterfaceWatch;
  #applier: PeerApplier | undefined;
  #serverKey: string | null = null;
  #lastNotice = "";
  #appliedAtMs = 0;
  #isBufferChecked = false;
  readonly #stop = new AbortController();
  /** Endpoints by public key, of devices that are not in the list until it is read again. */
  readonly #pending = new Map<string, string>();

  constructor(options: SessionOptions) {
    super();
    this.#options = options;
    this.agent = new NetworkAgent(options, (network) => this.#handleNetwork(network));
    const { agent } = this;
    this.#list = new DeviceList({
      read: (signal) => options.api.listDevices(agent.network!.id, signal),
      intervalMs: options.apply ? APPLY_INTERVAL_MS : LIST_INTERVAL_MS,
      onChange: (devices) => this.#handleDevices(devices),
      onSettled: () => {
        this.#reportPending();
        const isDue = performance.now() - this.#appliedAtMs > REAPPLY_INTERVAL_MS;
        if (isDue && this.devices.length > 0) void this.#apply(this.devices);
      },
    });
    this.#watch = new InterfaceWatch({
      onEndpoint: (publicKey, localAddress) => {
        const flow = agent.findFlow(localAddress);
        if (flow !== undefined) agent.devices.identify(flow, publicKey);
      },
      onHandshake: (publicKey, atMs) => agent.devices.setHandshake(publicKey, atMs),
    });
    agent.on("device", (publicKey, endpoint) => this.#handleDevice(publicKey, endpoint));
    agent.on("reconnected", () => this.#list.refresh());
    agent.on("moved", (endpoint) =>
      this.#notify(
        `devices reach the network at ${endpoint} from now on; change Endpoint in their configurations, or add them again`,
      ),
    );
    agent.on("status", ({ transport }) => {
      if (transport === "udp") this.#checkBuffers();
    });
  }

  get devices(): readonly Device[] {
    return this.#list.devices;
  }

  start(): void {
    this.agent.start();
  }

  close(): void {
    this.#stop.abort();
    this.#list.stop();
    this.#watch.stop();
    this.agent.close();
  }

  async #handleNetwork(network: PrivateNetwork): Promise<void> {
    this.#list.start();
    if (network.server_public_key === this.#serverKey) return;
    this.#serverKey = network.server_public_key;
    this.#applier = undefined;
    await this.#findKey(network);
    this.#list.refresh();
  }

  async #findKey(network: PrivateNetwork): Promise<void> {
    let reader: InitiationReader | null = null;
    try {
      const privateKey = await this.#options.findPrivateKey(network);
      reader = privateKey === null ? null : new InitiationReader(privateKey);
    } catch (error) {
      this.#notify(explainError(error));
    }
    if (reader && reader.publicKey !== network.server_public_key) {
      const keys = `${reader.publicKey}, not the ${network.server_public_key} that is registered for ${network.name}`;
      this.#notify(
        `this machine's WireGuard server has the public key ${keys}; add --setup to register this machine, or name the right configuration with --config`,
      );
      reader = null;
    }
    this.agent.setInitiationReader(reader);
    if (reader || network.server_public_key === null) this.#watch.stop();
    else this.#watch.start(network.server_public_key);
  }

  /** A device that was added since the list was read needs its name, and with `--apply` its peer. */
  #handleDevice(publicKey: string, endpoint: string): void {
    const device = this.#list.find(publicKey);
    if (device || this.#pending.size >= PENDING_MAX) {
      this.emit("device", device, publicKey, endpoint);
      return;
    }
    this.#pending.set(publicKey, endpoint);
    this.#list.refresh();
  }

  #reportPending(): void {
    const waiting = [...this.#pending];
    this.#pending.clear();
    for (const [publicKey, endpoint] of waiting) {
      this.emit("device", this.#list.find(publicKey), publicKey, endpoint);
    }
  }

  #handleDevices(devices: readonly Device[]): void {
    this.emit("devices", devices);
    void this.#apply(devices);
  }

  async #apply(devices: readonly Device[]): Promise<void> {
    const { network } = this.agent;
    if (!this.#options.apply || !network) return;
    try {
      this.#applier ??= await this.#createApplier(network);
      this.#appliedAtMs = performance.now();
      const { added, removed } = await this.#applier.apply(devices, network.cidr);
      this.#lastNotice = "";
      for (const { name, assigned_ip } of added) this.#notify(`added ${name} (${assigned_ip})`);
      if (removed.length > 0) this.#notify(`removed ${removed.join(", ")}`);
      if (added.length + removed.length > 0) {
        await this.#options.apply.refreshConfig(network, this.#stop.signal);
      }
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      if (!isExpected(error)) throw error;
      this.#notify(`the WireGuard peers are not updated: ${explainError(error)}`);
      // The interface may come up later; the same list must be applied then.
      this.#list.invalidate();
    }
  }

  async #createApplier(network: PrivateNetwork): Promise<PeerApplier> {
    const { interfaceName, createAppliedPeers } = this.#options.apply!;
    const name = interfaceName ?? (await findInterface(network.server_public_key ?? ""));
    if (name === null || !(await listInterfaces()).includes(name)) {
      throw new ToolError(
        `no WireGuard interface has the public key ${network.server_public_key}; bring it up: wg-quick up`,
      );
    }
    return new PeerApplier(name, createAppliedPeers(network));
  }

  #checkBuffers(): void {
    const bytes = this.agent.buffers?.receiveBytes;
    if (this.#isBufferChecked || bytes === undefined) return;
    this.#isBufferChecked = true;
    if (bytes >= BUFFER_MIN_BYTES) return;
    const sizes = "net.core.rmem_max=4194304 net.core.wmem_max=4194304";
    const advice = process.platform === "linux" ? `; run: sysctl -w ${sizes}` : "";
    this.#notify(
      `the system limits UDP buffers to ${Math.round(bytes / 1024)} KiB, which loses packets at high rates${advice}`,
    );
  }

  /** Emits the same message only once in a row. */
  #notify(message: string): void {
    if (message === this.#lastNotice) return;
    this.#lastNotice = message;
    this.emit("notice", message);
  }
}

/** Whether the operator or a later attempt can correct it; a failed file operation has the name of its system call. */
function isExpected(error: unknown): error is Error {
  const kinds = [ToolError, SettingsError, RejectionError, RetryableError];
  if (kinds.some((kind) => error instanceof kind)) return true;
  return error instanceof Error && "syscall" in error;
}
