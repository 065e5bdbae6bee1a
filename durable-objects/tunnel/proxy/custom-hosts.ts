/**
 * Custom domains that lead to this tunnel, or did. An isolate of the edge remembers for a while where a
 * domain led: whoever it sends here for one that has left is told that nobody is here, and it asks anew.
 */

/** Domains whose coming and going a tunnel remembers: what counts is the time that a route is cached. */
export const CUSTOM_HOSTS_MAX = 200;

const KEY = "custom-hosts";

/** `version` is the row's, so that news which comes late changes nothing. */
export interface Residence {
  version: number;
  isHere: boolean;
}

export class CustomHosts {
  readonly #storage: DurableObjectStorage;
  /** Oldest news first. */
  readonly #hosts: Map<string, Residence>;
  #haveLeft = new Set<string>();

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#hosts = storage.kv.get<Map<string, Residence>>(KEY) ?? new Map<string, Residence>();
    this.#noteLeft();
  }

  set(host: string, residence: Residence): void {
    const known = this.#hosts.get(host);
    if (known && known.version >= residence.version) return;
    this.#hosts.delete(host);
    const [oldest] = this.#hosts.keys();
    if (oldest !== undefined && this.#hosts.size >= CUSTOM_HOSTS_MAX) this.#hosts.delete(oldest);
    this.#hosts.set(host, residence);
    this.#storage.kv.put(KEY, this.#hosts);
    this.#noteLeft();
  }

  /** For most tunnels there is nothing to look at. */
  hasLeft(request: Request): boolean {
    if (this.#haveLeft.size === 0) return false;
    return this.#haveLeft.has(new URL(request.url).hostname.replace(/\.$/, ""));
  }

  #noteLeft(): void {
    const left = [...this.#hosts].filter(([, { isHere }]) => !isHere);
    this.#haveLeft = new Set(left.map(([host]) => host));
  }
}
