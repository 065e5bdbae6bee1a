/** The status of networks and tunnels for the API: the changes, and everything after a reconnect. */
import type { NetworkStatus, RelayStatus, AssociationUsage } from "../protocol/relay/link.ts";
import type { Association } from "./association.ts";
import {
  ENDED_USAGE_RETENTION_MS,
  ENDED_USAGE_MAX,
  LINK_STATUS_MAX_BYTES,
  NETWORK_RECORDS_MAX,
  NETWORK_STATUS_MAX_AGE_MS,
} from "./limits.ts";
import { dropOldest } from "../shared/bounds/bounded-map.ts";

interface ReportEntry<Item> {
  item: Item;
  /** The last text that was sent, to detect changes. */
  text: string;
  sentAtMs: number;
}

export class StatusReporter {
  /** By network, including those that went offline in this run. */
  readonly #networks = new Map<string, ReportEntry<NetworkStatus>>();
  /** By source. */
  readonly #tunnels = new Map<string, ReportEntry<AssociationUsage>>();
  #mustSend = false;
  readonly #ended = new Map<string, { usage: AssociationUsage; endedAtMs: number }>();

  /** An association ended: its network is offline, its totals are the last ones. @param now milliseconds. */
  recordEnd(association: Association, now: number): void {
    const usage = association.getUsage?.();
    if (usage) {
      this.#ended.set(usage.source, { usage: { ...usage, openConnections: 0 }, endedAtMs: now });
      dropOldest(this.#ended, ENDED_USAGE_MAX);
    }
    const network = association.getNetworkStatus?.(now);
    if (network) {
      const offline = { ...network, state: "offline", latencyMs: null, loss: null } as const;
      // Sent with the next report, unless another agent serves the network when that is sent.
      this.#networks.delete(network.networkId);
      this.#networks.set(network.networkId, { item: offline, text: "", sentAtMs: 0 });
      dropOldest(this.#networks, NETWORK_RECORDS_MAX);
    }
  }

  /** After a hello: the API has no status of this connection yet, so the next one is complete, and sent even if it is empty. */
  reset(): void {
    this.#mustSend = true;
    for (const reported of [...this.#networks.values(), ...this.#tunnels.values()]) {
      reported.text = "";
    }
  }

  /** @returns messages with the changes since the last call. @param now milliseconds. */
  collect(associations: Iterable<Association>, now: number): RelayStatus[] {
    const networks: NetworkStatus[] = [];
    const tunnels: AssociationUsage[] = [];
    const live = new Set<string>();
    const liveSources = new Set<string>();
    for (const association of associations) {
      const status = association.getNetworkStatus?.(now);
      if (status) {
        live.add(status.networkId);
        const text = JSON.stringify({ ...status, lastSeenAtMs: 0 });
        const entry = { item: status, text, sentAtMs: now };
        if (update(this.#networks, status.networkId, entry, NETWORK_STATUS_MAX_AGE_MS)) {
          networks.push(status);
        }
      }
      const usage = association.getUsage?.();
      if (usage) {
        liveSources.add(usage.source);
        if (this.#updateUsage(usage, now)) tunnels.push(usage);
      }
    }
    for (const [id, reported] of this.#networks) {
      if (live.has(id) || reported.text !== "") continue;
      reported.text = "offline";
      networks.push(reported.item);
    }
    for (const [source, { usage, endedAtMs }] of this.#ended) {
      if (this.#updateUsage(usage, now)) tunnels.push(usage);
      liveSources.add(source);
      if (now - endedAtMs > ENDED_USAGE_RETENTION_MS) this.#ended.delete(source);
    }
    for (const source of this.#tunnels.keys()) {
      if (!liveSources.has(source)) this.#tunnels.delete(source);
    }
    const messages = toMessages(networks, tunnels);
    if (messages.length === 0 && this.#mustSend) messages.push(createStatus());
    this.#mustSend = false;
    return messages;
  }

  #updateUsage(usage: AssociationUsage, now: number): boolean {
    const entry = { item: usage, text: JSON.stringify(usage), sentAtMs: now };
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
