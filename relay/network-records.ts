/** Counters of a network over all associations of this run: devices and handshakes for another key. */
import type { DeviceStatus } from "../protocol/relay/link.ts";
import type { PeerTraffic } from "./udp/flows.ts";
import { BoundedMap } from "../shared/bounds/bounded-map.ts";

/** Networks whose counters outlive their association. */
export const NETWORK_RECORDS_MAX = 10_000;
const DEVICES_PER_NETWORK_MAX = 4_096;

interface DeviceRecord extends PeerTraffic {
  /** `address:port`, IPv6 in brackets. */
  endpoint: string | null;
  endpointSeenAtMs: number;
}

export class NetworkRecord {
  wrongKeyHandshakes = 0;
  /** By public key in base64. */
  readonly #devices = new Map<string, DeviceRecord>();
  /** Public keys of the devices that have changed since the last report. */
  readonly #changed = new Set<string>();
  #link: number | undefined;

  /** @returns undefined when there are too many devices. */
  getOrCreateDevice(publicKey: string): DeviceRecord | undefined {
    let device = this.#devices.get(publicKey);
    if (device || this.#devices.size >= DEVICES_PER_NETWORK_MAX) return device;
    device = {
      rxBytes: 0,
      txBytes: 0,
      lastHandshakeAtMs: null,
      endpoint: null,
      endpointSeenAtMs: 0,
    };
    this.#devices.set(publicKey, device);
    this.markChanged(publicKey);
    return device;
  }

  markChanged(publicKey: string): void {
    this.#changed.add(publicKey);
  }

  /** @returns the devices that have changed since the last call; all of them in the first call for a link to the API. */
  takeChanges(link: number): DeviceStatus[] {
    const keys = this.#link === link ? this.#changed : this.#devices.keys();
    const changes = [...keys].map((publicKey) =>
      toStatus(publicKey, this.#devices.get(publicKey)!),
    );
    this.#link = link;
    this.#changed.clear();
    return changes;
  }
}

export class NetworkRecords {
  readonly #records = new BoundedMap<string, NetworkRecord>(NETWORK_RECORDS_MAX);

  /** @returns the record of a network. When there are too many, the least recently used is dropped. */
  getOrCreate(networkId: string): NetworkRecord {
    const record = this.#records.get(networkId) ?? new NetworkRecord();
    this.#records.set(networkId, record);
    return record;
  }

  /** The network was deleted. */
  delete(networkId: string): void {
    this.#records.delete(networkId);
  }
}

function toStatus(publicKey: string, device: DeviceRecord): DeviceStatus {
  const { lastHandshakeAtMs, endpoint, rxBytes, txBytes } = device;
  return { publicKey, lastHandshakeAtMs, endpoint, rxBytes, txBytes };
}
