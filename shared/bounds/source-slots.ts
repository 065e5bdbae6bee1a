/** Limits how many requests, connections or ports are in use at the same time, in total and for each source. */

export class SourceSlots {
  readonly #total: number;
  readonly #takenBySource = new Map<string, number>();
  #taken = 0;

  constructor(total: number) {
    this.#total = total;
  }

  get taken(): number {
    return this.#taken;
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
    return (this.#takenBySource.get(source) ?? 0) < this.#total - this.#taken - 1;
  }

  /** For a connection or port that is open already: counts it even beyond the limit. */
  add(source: string): void {
    this.#takenBySource.set(source, (this.#takenBySource.get(source) ?? 0) + 1);
    this.#taken += 1;
  }

  /** Call it once for each slot. */
  free(source: string): void {
    const taken = this.#takenBySource.get(source) ?? 0;
    if (taken <= 1) this.#takenBySource.delete(source);
    else this.#takenBySource.set(source, taken - 1);
    this.#taken -= 1;
  }
}
