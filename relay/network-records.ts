/** Counters of a network over all associations of this run: devices and handshakes for another key. */
import { DEVICES_PER_NETWORK_MAX } from "../protocol/relay/limits.ts";
import type { DeviceStatus } from "../protocol/relay/link.ts";
import type { PeerTraffic } from "./udp/flows.ts";
import { BoundedMap } from "../shared/bounds/bounded-map.ts";

/** Networks whose counters outlive their association. */
export const NETWORK_RECORDS_MAX = 10_000;
/** Devices of all networks, some 500 bytes each. */
export const DEVICES_PER_RELAY_MAX = 65_536;

interface DeviceRecord extends PeerTraffic {
  readonly publicKey: string;
  /** `address:port`, IPv6 in brackets. */
  endpoint: string | null;
  endpointSeenAtMs: number;
  /** Whether it has changed since the last report. */
  hasChanged: boolean;
}

export class NetworkRecord {
  wrongKeyHandshakes = 0;
  /** The devices of all networks with their networks, the least recently changed first. */
  readonly #all: Map<DeviceRecord, NetworkRecord>;
  /** By public key in base64, the least recently changed first. */
  readonly #devices = new Map<string, DeviceRecord>();
  #link: number | undefined;

  constructor(all: Map<DeviceRecord, NetworkRecord>) {
    this.#all = all;
  }

  /**
   * For a device whose counters change. An agent can name any keys, so when there are too many, the least recently changed
   * device is dropped. When it returns, its counters begin at 0 again, as after a restart.
   */
  change(publicKey: string): DeviceRecord {
    const device = this.#devices.get(publicKey) ?? createDevice(publicKey);
    this.#delete(device);
    device.hasChanged = true;
    this.#devices.set(publicKey, device);
    this.#all.set(device, this);
    if (this.#devices.size > DEVICES_PER_NETWORK_MAX) {
      const [oldest] = this.#devices.values();
      this.#delete(oldest!);
    }
    if (this.#all.size > DEVICES_PER_RELAY_MAX) {
      const [first] = this.#all;
      const [oldest, network] = first!;
      network.#delete(oldest);
    }
    return device;
  }

  /** @returns the devices that have changed since the last call; all of them in the first call for a link to the API. */
  takeChanges(link: number): DeviceStatus[] {
    const isFirst = this.#link !== link;
    this.#link = link;
    const changes: DeviceStatus[] = [];
    for (const device of this.#devices.values()) {
      if (!device.hasChanged && !isFirst) continue;
      device.hasChanged = false;
      changes.push(toStatus(device));
    }
    return changes;
  }

  clear(): void {
    for (const device of this.#devices.values()) this.#delete(device);
  }

  #delete(device: DeviceRecord): void {
    this.#devices.delete(device.publicKey);
    this.#all.delete(device);
  }
}

export class NetworkRecords {
  readonly #records = new BoundedMap<string, NetworkRecord>(NETWORK_RECORDS_MAX);
  readonly #devices = new Map<DeviceRecord, NetworkRecord>();

  /** @returns the record of a network. When there are too many, the least recently used is dropped. */
  getOrCreate(networkId: string): NetworkRecord {
    const record = this.#records.get(networkId) ?? new NetworkRecord(this.#devices);
    this.#records.set(networkId, record);
    return record;
  }

  /** The network was deleted. */
  delete(networkId: string): void {
    this.#records.get(networkId)?.clear();
    this.#records.delete(networkId);
  }
}

function createDevice(publicKey: string): DeviceRecord {
  return {
    publicKey,
    rxBytes: 0,
    txBytes: 0,
    lastHandshakeAtMs: null,
    endpoint: null,
    endpointSeenAtMs: 0,
    hasChanged: true,
  };
}

function toStatus(device: DeviceRecord): DeviceStatus {
  const { publicKey, lastHandshakeAtMs, endpoint, rxBytes, txBytes } = device;
  return { publicKey, lastHandshakeAtMs, endpoint, rxBytes, txBytes };
}
