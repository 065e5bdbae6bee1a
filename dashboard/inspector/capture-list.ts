/** Captured requests in the order of their ids, which is that of time. */
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";

type PutResult = "added" | "replaced" | "unchanged";

export class CaptureList {
  /** Oldest first: new requests are appended, or inserted near the end. */
  readonly #rows: CaptureSummary[] = [];
  readonly #byId = new Map<string, CaptureSummary>();

  get size(): number {
    return this.#rows.length;
  }

  /** @param index 0 is the newest. */
  getNewest(index: number): CaptureSummary | undefined {
    return this.#rows[this.#rows.length - 1 - index];
  }

  get(id: string): CaptureSummary | undefined {
    return this.#byId.get(id);
  }

  get oldestId(): string | undefined {
    return this.#rows[0]?.id;
  }

  get newestId(): string | undefined {
    return this.#rows.at(-1)?.id;
  }

  /** @returns the index of this id by `getNewest`, or -1. */
  findIndex(id: string): number {
    if (!this.#byId.has(id)) return -1;
    return this.#rows.length - 1 - this.#findPosition(id);
  }

  /** Adds a request, or replaces its earlier state. A request that has ended never opens again. */
  put(capture: CaptureSummary): PutResult {
    const { id } = capture;
    const known = this.#byId.get(id);
    const position = this.#findPosition(id);
    if (known === undefined) {
      this.#rows.splice(position, 0, capture);
      this.#byId.set(id, capture);
      return "added";
    }
    const isOlderState = known.state !== "open" && capture.state === "open";
    if (isOlderState || isSameState(known, capture)) return "unchanged";
    this.#rows[position] = capture;
    this.#byId.set(id, capture);
    return "replaced";
  }

  delete(id: string): void {
    if (!this.#byId.delete(id)) return;
    this.#rows.splice(this.#findPosition(id), 1);
  }

  /** @returns how many were removed. */
  keepNewest(maxRows: number): number {
    return this.#removeOldest(this.#rows.length - maxRows);
  }

  /** @returns how many were removed. */
  deleteOlderThan(id: string): number {
    return this.#removeOldest(this.#findPosition(id));
  }

  clear(): void {
    this.#rows.length = 0;
    this.#byId.clear();
  }

  /** Newest first. */
  toArray(): CaptureSummary[] {
    return this.#rows.toReversed();
  }

  #removeOldest(count: number): number {
    if (count <= 0) return 0;
    for (const { id } of this.#rows.splice(0, count)) this.#byId.delete(id);
    return count;
  }

  /** The position of the id, or the one at which it would be inserted. */
  #findPosition(id: string): number {
    const rows = this.#rows;
    if (rows.length === 0 || rows.at(-1)!.id < id) return rows.length;
    let [low, high] = [0, rows.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle]!.id < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isSameState(one: CaptureSummary, other: CaptureSummary): boolean {
  return (
    one.state === other.state &&
    one.status === other.status &&
    one.duration_ms === other.duration_ms &&
    one.request_size === other.request_size &&
    one.response_size === other.response_size
  );
}
