/** Limits each source address at a tunnel's port: connections at a time, and new connections a second. */
import { getAddressGroup } from "../../shared/address-group.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import {
  takeFromBucket,
  type TokenBucket,
  type TokenBucketConfig,
} from "../../shared/bounds/token-bucket.ts";
import { SECOND_MS } from "../../shared/time.ts";

interface SourceLimits {
  connectionsMax: number;
  burst: number;
  perSecond: number;
  sourcesMax: number;
}

interface Source {
  open: number;
  /** undefined before its first connection. */
  bucket: TokenBucket | undefined;
}

export class SourceLimiter {
  readonly #connectionsMax: number;
  readonly #newConnections: TokenBucketConfig;
  /** By address group, the least recently seen first. */
  readonly #sources: BoundedMap<string, Source>;

  constructor(limits: SourceLimits) {
    this.#connectionsMax = limits.connectionsMax;
    this.#newConnections = { burst: limits.burst, refillMs: SECOND_MS / limits.perSecond };
    this.#sources = new BoundedMap(limits.sourcesMax);
  }

  /** Counts a new connection. @returns false when the address is over its limits; nothing is counted then. */
  admit(address: string, nowMs: number): boolean {
    const group = getAddressGroup(address);
    const source = this.#sources.get(group) ?? { open: 0, bucket: undefined };
    this.#sources.set(group, source);
    if (source.open >= this.#connectionsMax) return false;
    const { bucket, waitMs } = takeFromBucket(source.bucket, this.#newConnections, nowMs);
    source.bucket = bucket;
    if (waitMs > 0) return false;
    source.open += 1;
    return true;
  }

  /** A connection that was admitted is closed. */
  release(address: string): void {
    const source = this.#sources.get(getAddressGroup(address));
    if (source && source.open > 0) source.open -= 1;
  }
}
