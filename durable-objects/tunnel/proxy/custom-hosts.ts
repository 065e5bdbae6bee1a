/**
 * The custom domains that point to this tunnel, or did. The edge caches routes: when a cached route still leads
 * here after a domain has moved away, the object refuses the request, and the edge resolves the domain again.
 */
import { dropOldest } from "../../../shared/bounds/bounded-map.ts";

/** Domains whose last change a tunnel stores. Only changes within the time that the edge caches a route matter. */
export const CUSTOM_HOSTS_MAX = 200;

const KEY = "custom-hosts";

/** `version` is the row's, so that an update that arrives late is ignored. */
export interface CustomHostState {
  version: number;
  isHere: boolean;
}

export class CustomHosts {
  readonly #storage: DurableObjectStorage;
  /** The least recently updated first. */
  readonly #hosts: Map<string, CustomHostState>;
  #movedAway = new Set<string>();

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#hosts =
      storage.kv.get<Map<string, CustomHostState>>(KEY) ?? new Map<string, CustomHostState>();
    this.#updateMovedAway();
  }

  set(host: string, state: CustomHostState): void {
    const known = this.#hosts.get(host);
    if (known && known.version >= state.version) return;
    this.#hosts.delete(host);
    this.#hosts.set(host, state);
    dropOldest(this.#hosts, CUSTOM_HOSTS_MAX);
    this.#storage.kv.put(KEY, this.#hosts);
    this.#updateMovedAway();
  }

  /** The last changes, the least recent first. */
  get states(): [host: string, state: CustomHostState][] {
    return [...this.#hosts];
  }

  /** Returns at once for most tunnels, which have no such domain. */
  hasMovedAway(request: Request): boolean {
    if (this.#movedAway.size === 0) return false;
    return this.#movedAway.has(new URL(request.url).hostname.replace(/\.$/, ""));
  }

  #updateMovedAway(): void {
    const moved = [...this.#hosts].filter(([, { isHere }]) => !isHere);
    this.#movedAway = new Set(moved.map(([host]) => host));
  }
}
