/**
 * A relay's reports of private networks. The newest report is in memory and is saved some seconds later, one
 * write for many reports. Until then a timer keeps the object awake. A crash also closes the link, after which
 * the relay reports everything again.
 */
import { z } from "zod";
import { NetworkStatus, type DeviceStatus } from "../../protocol/relay/link.ts";

const SAVE_AFTER_MS = 10_000;

export type NetworkSummary = Omit<NetworkStatus, "devices">;

const StoredSummary = NetworkStatus.omit({ devices: true }).extend({
  /** The connection of the relay that reported it. */
  linkId: z.string(),
});
type StoredSummary = z.infer<typeof StoredSummary>;

/** `rxBytes` and `txBytes` are totals since the device was first seen, over all runs of the relay. */
export type DeviceTotals = DeviceStatus;

interface Device {
  status: DeviceStatus;
  /** The run of the relay in which the counters of `status` began at 0. */
  epoch: string;
  /** The totals of all earlier runs. */
  earlier: { rxBytes: number; txBytes: number };
}

export class Networks {
  readonly #sql: SqlStorage;
  readonly #summaries = new Map<string, StoredSummary>();
  /** By network and public key. */
  readonly #devices = new Map<string, Map<string, Device>>();
  readonly #unsavedSummaries = new Set<string>();
  readonly #unsavedDevices = new Map<string, Set<string>>();
  #saving: ReturnType<typeof setTimeout> | undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`create table if not exists networks (id text primary key, summary text not null)`);
    sql.exec(`create table if not exists devices (
      network_id text not null,
      public_key text not null,
      device text not null,
      primary key (network_id, public_key)
    ) without rowid`);
  }

  /** @param epoch the relay's run: each run starts counting bytes at 0. */
  apply(status: NetworkStatus, { linkId, epoch }: { linkId: string; epoch: string }): void {
    const { devices, ...summary } = status;
    const { networkId } = status;
    this.#summaries.set(networkId, { ...summary, linkId });
    this.#unsavedSummaries.add(networkId);
    const known = this.#loadDevices(networkId);
    const unsaved = this.#unsavedDevices.get(networkId) ?? new Set();
    for (const reported of devices) {
      known.set(reported.publicKey, updateDevice(known.get(reported.publicKey), reported, epoch));
      unsaved.add(reported.publicKey);
    }
    this.#unsavedDevices.set(networkId, unsaved);
    this.#saving ??= setTimeout(() => this.save(), SAVE_AFTER_MS);
  }

  has(networkId: string): boolean {
    return this.#find(networkId) !== null;
  }

  /**
   * The last report; null when there is none. A relay that reconnects reports every network that it serves, so a
   * network that it has not reported since is offline.
   *
   * @param linkId the current connection; undefined while the relay is disconnected.
   */
  findSummary(networkId: string, linkId: string | undefined): NetworkSummary | null {
    const found = this.#find(networkId);
    if (!found) return null;
    const { linkId: reportedOver, ...summary } = found;
    return reportedOver === linkId ? summary : toOffline(summary);
  }

  listDevices(networkId: string): DeviceTotals[] {
    return [...this.#loadDevices(networkId).values()].map(({ status, earlier }) => ({
      ...status,
      rxBytes: earlier.rxBytes + status.rxBytes,
      txBytes: earlier.txBytes + status.txBytes,
    }));
  }

  /** For a network that was deleted. */
  remove(networkId: string): void {
    this.#summaries.delete(networkId);
    this.#devices.delete(networkId);
    this.#unsavedSummaries.delete(networkId);
    this.#unsavedDevices.delete(networkId);
    this.#sql.exec("delete from networks where id = ?", networkId);
    this.#sql.exec("delete from devices where network_id = ?", networkId);
  }

  save(): void {
    clearTimeout(this.#saving);
    this.#saving = undefined;
    for (const networkId of this.#unsavedSummaries) {
      const summary = JSON.stringify(this.#summaries.get(networkId));
      this.#sql.exec("insert or replace into networks values (?, ?)", networkId, summary);
    }
    for (const [networkId, keys] of this.#unsavedDevices) {
      for (const key of keys) {
        const device = JSON.stringify(this.#devices.get(networkId)?.get(key));
        this.#sql.exec("insert or replace into devices values (?, ?, ?)", networkId, key, device);
      }
    }
    this.#unsavedSummaries.clear();
    this.#unsavedDevices.clear();
  }

  #find(networkId: string): StoredSummary | null {
    const known = this.#summaries.get(networkId);
    if (known) return known;
    const [row] = this.#sql
      .exec<{ summary: string }>("select summary from networks where id = ?", networkId)
      .toArray();
    if (!row) return null;
    const summary = StoredSummary.parse(JSON.parse(row.summary));
    this.#summaries.set(networkId, summary);
    return summary;
  }

  #loadDevices(networkId: string): Map<string, Device> {
    let devices = this.#devices.get(networkId);
    if (!devices) {
      const rows = this.#sql.exec<{ public_key: string; device: string }>(
        "select public_key, device from devices where network_id = ?",
        networkId,
      );
      devices = new Map(
        rows.toArray().map(({ public_key: key, device }) => [key, JSON.parse(device) as Device]),
      );
      this.#devices.set(networkId, devices);
    }
    return devices;
  }
}

/** Adds the bytes of earlier runs of the relay. The last known handshake is kept until a newer one is reported. */
function updateDevice(known: Device | undefined, reported: DeviceStatus, epoch: string): Device {
  if (!known) return { status: reported, epoch, earlier: { rxBytes: 0, txBytes: 0 } };
  const isSameRun = known.epoch === epoch;
  return {
    status: {
      ...reported,
      lastHandshakeAtMs: reported.lastHandshakeAtMs ?? known.status.lastHandshakeAtMs,
      endpoint: reported.endpoint ?? known.status.endpoint,
    },
    epoch,
    earlier: isSameRun
      ? known.earlier
      : {
          rxBytes: known.earlier.rxBytes + known.status.rxBytes,
          txBytes: known.earlier.txBytes + known.status.txBytes,
        },
  };
}

function toOffline(summary: NetworkSummary): NetworkSummary {
  return { ...summary, state: "offline", latencyMs: null, loss: null, isLocalListening: null };
}
