/** Limits each source address at a tunnel's port: connections at a time, and new connections a second. */
import { getAddressGroup } from "../../shared/address-group.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";

export interface SourceLimits {
  connectionsMax: number;
  burst: number;
  perSecond: number;
  sourcesMax: number;
}

interface Source {
  open: number;
  tokens: number;
  refilledAtMs: number;
}

export class SourceLimiter {
  readonly #limits: SourceLimits;
  /** By address group, the least recently seen first. */
  readonly #sources: BoundedMap<string, Source>;

  constructor(limits: SourceLimits) {
    this.#limits = limits;
    this.#sources = new BoundedMap(limits.sourcesMax);
  }

  /** Counts a new connection. @returns false when the address is over its limits; nothing is counted then. */
  admit(address: string, nowMs: number): boolean {
    const group = getAddressGroup(address);
    const source = this.#sources.get(group) ?? {
      open: 0,
      tokens: this.#limits.burst,
      refilledAtMs: nowMs,
    };
    this.#sources.set(group, source);
    const earned = ((nowMs - source.refilledAtMs) / 1000) * this.#limits.perSecond;
    source.tokens = Math.min(this.#limits.burst, source.tokens + earned);
    source.refilledAtMs = nowMs;
    if (source.open >= this.#limits.connectionsMax || source.tokens < 1) return false;
    source.tokens -= 1;
    source.open += 1;
    return true;
  }

  /** A connection that was admitted is closed. */
  release(address: string): void {
    const source = this.#sources.get(getAddressGroup(address));
    if (source && source.open > 0) source.open -= 1;
  }
}
