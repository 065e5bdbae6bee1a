/**
 * A relay's reports of private networks. The newest report is in memory and is saved some seconds later, one
 * write for many reports. Until then a timer keeps the object awake. A crash also closes the link, after which
 * the relay reports everything again. Devices are in memory only until they are saved: an agent can name any keys, and the
 * networks of all organizations share the object.
 */
import { z } from "zod";
import { DEVICES_PER_NETWORK_MAX } from "../../protocol/relay/limits.ts";
import { NetworkStatus, type DeviceStatus } from "../../protocol/relay/link.ts";

const SAVE_AFTER_MS = 10_000;
/** With so many devices that wait to be saved, all are saved at once. A report has at most 1 MiB, some 10,000 devices. */
export const UNSAVED_DEVICES_MAX = 4_096;

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
  /** Milliseconds since the epoch. Missing in rows of earlier versions. */
  reportedAtMs?: number;
}

export class Networks {
  readonly #sql: SqlStorage;
  readonly #summaries = new Map<string, StoredSummary>();
  readonly #unsavedSummaries = new Set<string>();
  /** By network and public key. */
  readonly #unsavedDevices = new Map<string, Map<string, Device>>();
  #unsavedDeviceCount = 0;
  /** Networks with unsaved devices that have no row yet. */
  readonly #grown = new Set<string>();
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
    for (const reported of devices) {
      const known = this.#findDevice(networkId, reported.publicKey);
      if (!known) this.#grown.add(networkId);
      const device = updateDevice(known, reported, epoch);
      this.#setUnsaved(networkId, { ...device, reportedAtMs: Date.now() });
    }
    if (this.#unsavedDeviceCount >= UNSAVED_DEVICES_MAX) return this.save();
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
    const devices = new Map<string, Device>();
    for (const device of this.#readDevices(networkId)) devices.set(device.status.publicKey, device);
    for (const [key, device] of this.#unsavedDevices.get(networkId) ?? []) devices.set(key, device);
    return [...devices.values()].map(({ status, earlier }) => ({
      ...status,
      rxBytes: earlier.rxBytes + status.rxBytes,
      txBytes: earlier.txBytes + status.txBytes,
    }));
  }

  /** For a network that was deleted. */
  remove(networkId: string): void {
    this.#summaries.delete(networkId);
    this.#unsavedSummaries.delete(networkId);
    this.#unsavedDeviceCount -= this.#unsavedDevices.get(networkId)?.size ?? 0;
    this.#unsavedDevices.delete(networkId);
    this.#grown.delete(networkId);
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
    for (const [networkId, devices] of this.#unsavedDevices) {
      for (const [key, device] of devices) {
        const text = JSON.stringify(device);
        this.#sql.exec("insert or replace into devices values (?, ?, ?)", networkId, key, text);
      }
    }
    for (const networkId of this.#grown) this.#deleteExcess(networkId);
    this.#unsavedSummaries.clear();
    this.#unsavedDevices.clear();
    this.#unsavedDeviceCount = 0;
    this.#grown.clear();
  }

  /** Leaves the devices of a network that were reported last. */
  #deleteExcess(networkId: string): void {
    this.#sql.exec(
      `delete from devices where network_id = ?1 and public_key in (
        select public_key from devices where network_id = ?1
        order by json_extract(device, '$.reportedAtMs') desc limit -1 offset ?2
      )`,
      networkId,
      DEVICES_PER_NETWORK_MAX,
    );
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

  #findDevice(networkId: string, publicKey: string): Device | undefined {
    const unsaved = this.#unsavedDevices.get(networkId)?.get(publicKey);
    return unsaved ?? this.#readDevices(networkId, publicKey)[0];
  }

  /** The saved ones: all of a network, or the one with a public key. */
  #readDevices(networkId: string, publicKey?: string): Device[] {
    const where = publicKey === undefined ? "" : "and public_key = ?";
    const values = publicKey === undefined ? [networkId] : [networkId, publicKey];
    return this.#sql
      .exec<{ device: string }>(
        `select device from devices where network_id = ? ${where}`,
        ...values,
      )
      .toArray()
      .map(({ device }) => JSON.parse(device) as Device);
  }

  #setUnsaved(networkId: string, device: Device): void {
    let unsaved = this.#unsavedDevices.get(networkId);
    if (!unsaved) this.#unsavedDevices.set(networkId, (unsaved = new Map<string, Device>()));
    const { publicKey } = device.status;
    if (!unsaved.has(publicKey)) this.#unsavedDeviceCount += 1;
    unsaved.set(publicKey, device);
  }
}

/**
 * Adds the bytes of earlier runs of the relay. The last known handshake is kept until a newer one is reported. A relay that has
 * too many devices forgets some: counters that are lower than before began at 0 again, as in another run.
 */
function updateDevice(known: Device | undefined, reported: DeviceStatus, epoch: string): Device {
  if (!known) return { status: reported, epoch, earlier: { rxBytes: 0, txBytes: 0 } };
  const { rxBytes, txBytes } = known.status;
  const isSameRun =
    known.epoch === epoch && reported.rxBytes >= rxBytes && reported.txBytes >= txBytes;
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
          rxBytes: known.earlier.rxBytes + rxBytes,
          txBytes: known.earlier.txBytes + txBytes,
        },
  };
}

function toOffline(summary: NetworkSummary): NetworkSummary {
  return { ...summary, state: "offline", latencyMs: null, loss: null, isLocalListening: null };
}
