/** The status of networks and tunnels for the API: the changes, and everything after a reconnect. */
import type { NetworkStatus, RelayStatus, AssociationUsage } from "../protocol/relay/link.ts";
import type { Association, NetworkSummary } from "./association.ts";
import { NETWORK_RECORDS_MAX } from "./network-records.ts";
import { dropOldest } from "../shared/bounds/bounded-map.ts";
import { MINUTE_MS } from "../shared/time.ts";

/** A status message is split by networks beyond this. */
const LINK_STATUS_MAX_BYTES = 256 * 1024;
/** A live network is reported at least this often, so that "last seen" does not grow old. */
export const NETWORK_STATUS_MAX_AGE_MS = 30_000;
/** How long the last totals of an ended association are reported again after a new hello. */
const ENDED_USAGE_RETENTION_MS = 10 * MINUTE_MS;
const ENDED_USAGE_MAX = 10_000;

interface ReportEntry<Item> {
  item: Item;
  /** The last text that was sent, to detect changes. */
  text: string;
  sentAtMs: number;
}

interface ReportedNetwork {
  summary: NetworkSummary;
  record: Association["record"];
}

export class StatusReporter {
  /** By network, including those that went offline in this run. */
  readonly #networks = new Map<string, ReportEntry<ReportedNetwork>>();
  /** By source. */
  readonly #tunnels = new Map<string, ReportEntry<AssociationUsage>>();
  #mustSend = false;
  /** Counts the hellos, so that a network's record knows which of its devices the API has. */
  #link = 0;
  readonly #ended = new Map<string, { usage: AssociationUsage; endedAtMs: number }>();

  /** An association ended: its network is offline, its totals are the last ones. */
  recordEnd(association: Association, nowMs: number): void {
    const usage = association.getUsage?.();
    if (usage) {
      this.#ended.set(usage.source, { usage: { ...usage, openConnections: 0 }, endedAtMs: nowMs });
      dropOldest(this.#ended, ENDED_USAGE_MAX);
    }
    const network = association.getNetworkStatus?.(nowMs);
    if (network) {
      const summary = { ...network, state: "offline", latencyMs: null, loss: null } as const;
      const item = { summary, record: association.record };
      // Sent with the next report, unless another agent serves the network when that is sent.
      this.#networks.delete(network.networkId);
      this.#networks.set(network.networkId, { item, text: "", sentAtMs: 0 });
      dropOldest(this.#networks, NETWORK_RECORDS_MAX);
    }
  }

  /** The network was deleted: its devices need no memory, and the API no report. */
  forgetNetwork(networkId: string): void {
    this.#networks.delete(networkId);
  }

  /** After a hello: the API has no status of this connection yet, so the next one is complete, and sent even if it is empty. */
  reset(): void {
    this.#mustSend = true;
    this.#link += 1;
    for (const reported of [...this.#networks.values(), ...this.#tunnels.values()]) {
      reported.text = "";
    }
  }

  /** @returns messages with the changes since the last call. */
  collect(associations: Iterable<Association>, nowMs: number): RelayStatus[] {
    const networks: NetworkStatus[] = [];
    const tunnels: AssociationUsage[] = [];
    const live = new Set<string>();
    const liveSources = new Set<string>();
    for (const association of associations) {
      const summary = association.getNetworkStatus?.(nowMs);
      if (summary) {
        const { networkId } = summary;
        live.add(networkId);
        const text = JSON.stringify({ ...summary, lastSeenAtMs: 0 });
        const item = { summary, record: association.record };
        const entry = { item, text, sentAtMs: nowMs };
        const isDue = update(this.#networks, networkId, entry, NETWORK_STATUS_MAX_AGE_MS);
        const status = this.#addDevices(item);
        if (isDue || status.devices.length > 0) networks.push(status);
      }
      const usage = association.getUsage?.();
      if (usage) {
        liveSources.add(usage.source);
        if (this.#updateUsage(usage, nowMs)) tunnels.push(usage);
      }
    }
    for (const [id, reported] of this.#networks) {
      if (live.has(id) || reported.text !== "") continue;
      reported.text = "offline";
      networks.push(this.#addDevices(reported.item));
    }
    for (const [source, { usage, endedAtMs }] of this.#ended) {
      if (this.#updateUsage(usage, nowMs)) tunnels.push(usage);
      liveSources.add(source);
      if (nowMs - endedAtMs > ENDED_USAGE_RETENTION_MS) this.#ended.delete(source);
    }
    for (const source of this.#tunnels.keys()) {
      if (!liveSources.has(source)) this.#tunnels.delete(source);
    }
    const messages = toMessages(networks, tunnels);
    if (messages.length === 0 && this.#mustSend) messages.push(createStatus());
    this.#mustSend = false;
    return messages;
  }

  #addDevices({ summary, record }: ReportedNetwork): NetworkStatus {
    return { ...summary, devices: record?.takeChanges(this.#link) ?? [] };
  }

  #updateUsage(usage: AssociationUsage, nowMs: number): boolean {
    const entry = { item: usage, text: JSON.stringify(usage), sentAtMs: nowMs };
    return update(this.#tunnels, usage.source, entry, Infinity);
  }
}

/** @returns whether the entry must be sent: it has changed, or was sent `maxAgeMs` ago. */
function update<Item>(
  reported: Map<string, ReportEntry<Item>>,
  key: string,
  entry: ReportEntry<Item>,
  maxAgeMs: number,
): boolean {
  const earlier = reported.get(key);
  if (earlier?.text === entry.text && entry.sentAtMs - earlier.sentAtMs < maxAgeMs) return false;
  reported.set(key, entry);
  return true;
}

function createStatus(): RelayStatus {
  return { type: "status", networks: [], tunnels: [] };
}

function toMessages(networks: NetworkStatus[], tunnels: AssociationUsage[]): RelayStatus[] {
  const messages: RelayStatus[] = [];
  let message = createStatus();
  let bytes = 0;
  const add = (item: object, push: (message: RelayStatus) => void) => {
    const length = JSON.stringify(item).length;
    if (bytes > 0 && bytes + length > LINK_STATUS_MAX_BYTES) {
      messages.push(message);
      message = createStatus();
      bytes = 0;
    }
    push(message);
    bytes += length;
  };
  for (const network of networks) add(network, (to) => to.networks.push(network));
  for (const usage of tunnels) add(usage, (to) => to.tunnels.push(usage));
  if (bytes > 0) messages.push(message);
  return messages;
}
