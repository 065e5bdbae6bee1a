/** Limits how many requests, connections or ports are in use at the same time, in total and for each source. */
import { FairShare, type Share } from "./fair-share.ts";

export class SourceSlots {
  readonly #total: FairShare;
  /** The shares of the sources that have a slot. */
  readonly #shares = new Map<string, Share>();

  constructor(total: number) {
    this.#total = new FairShare(total);
  }

  get taken(): number {
    return this.#total.used;
  }

  /**
   * A source may have as many as stay free for others, so a single one gets half.
   * @param source an address group (`getAddressGroup`), or an organization.
   * @returns false when it may not have another one.
   */
  take(source: string): boolean {
    if (!this.hasRoom(source)) return false;
    this.add(source);
    return true;
  }

  /** Whether `take` would succeed. */
  hasRoom(source: string): boolean {
    return this.#findShare(source).hasRoom(1);
  }

  /** For a connection or port that is open already: counts it even beyond the limit. */
  add(source: string): void {
    const share = this.#findShare(source);
    share.add(1);
    this.#shares.set(source, share);
  }

  /** Call it once for each slot. */
  free(source: string): void {
    const share = this.#shares.get(source);
    share?.add(-1);
    if (share?.held === 0) this.#shares.delete(source);
  }

  #findShare(source: string): Share {
    return this.#shares.get(source) ?? this.#total.createShare();
  }
}
