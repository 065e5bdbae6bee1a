/**
 * Custom domains that lead to this tunnel, or did. An isolate of the edge remembers for a while where a
 * domain led: whoever it sends here for one that has left is told that nobody is here, and it asks anew.
 */
import { dropOldest } from "../../../shared/bounded-map.ts";

/** Domains whose coming and going a tunnel remembers: what counts is the time that a route is cached. */
export const CUSTOM_HOSTS_MAX = 200;

const KEY = "custom-hosts";

/** `version` is the row's, so that news which comes late changes nothing. */
export interface CustomHostState {
  version: number;
  isHere: boolean;
}

export class CustomHosts {
  readonly #storage: DurableObjectStorage;
  /** Oldest news first. */
  readonly #hosts: Map<string, CustomHostState>;
  #movedAway = new Set<string>();

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#hosts = storage.kv.get<Map<string, CustomHostState>>(KEY) ?? new Map<string, CustomHostState>();
    this.#updateMovedAway();
  }

  set(host: string, residence: CustomHostState): void {
    const known = this.#hosts.get(host);
    if (known && known.version >= residence.version) return;
    this.#hosts.delete(host);
    this.#hosts.set(host, residence);
    dropOldest(this.#hosts, CUSTOM_HOSTS_MAX);
    this.#storage.kv.put(KEY, this.#hosts);
    this.#updateMovedAway();
  }

  /** For most tunnels there is nothing to look at. */
  hasMovedAway(request: Request): boolean {
    if (this.#movedAway.size === 0) return false;
    return this.#movedAway.has(new URL(request.url).hostname.replace(/\.$/, ""));
  }

  #updateMovedAway(): void {
    const left = [...this.#hosts].filter(([, { isHere }]) => !isHere);
    this.#movedAway = new Set(left.map(([host]) => host));
  }
}
