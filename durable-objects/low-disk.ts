/**
 * Limits what objects store while the disk of a self-hosted server is almost full: no more than they hold already, because a
 * full disk would stop PostgreSQL, and with it the service for everyone. The SQLite log of an object (`-wal`) grows to
 * 4 MiB even if the object only replaces what it stores. So they store nothing at all once they have used half of the server's reserve. The
 * server reports its disk repeatedly (`ObjectsControl`). On Cloudflare there are no such reports.
 */
import type { DiskShortage } from "../protocol/self-host/disk-shortage.ts";
import { isAhead, SECOND_MS } from "../shared/time.ts";

/** How long a report is valid. The server repeats it more often. */
const REPORT_HOLDS_MS = 10 * SECOND_MS;
/** Any object may store this much, so that even a new tunnel has captures. */
export const LOW_DISK_MIN_BYTES = 256 * 1024;

/** One for each isolate: its objects share the disk. */
let reported: DiskShortage = "low";
let reportHoldsUntilMs = 0;

export function reportLowDisk(nowMs: number, shortage: DiskShortage): void {
  reported = shortage;
  reportHoldsUntilMs = nowMs + REPORT_HOLDS_MS;
}

/** @returns null while there is enough space. */
export function getDiskShortage(nowMs: number): DiskShortage | null {
  return isAhead(reportHoldsUntilMs, REPORT_HOLDS_MS, nowMs) ? reported : null;
}

/** Whether objects must not even replace what they store. */
export function isDiskCritical(nowMs: number): boolean {
  const shortage = getDiskShortage(nowMs);
  return shortage !== null && shortage !== "low";
}

/** How much one object may store. */
export class StorageLimit {
  readonly #maxBytes: number;
  /** What the object held when it first noticed that there is too little space; undefined while there is enough. */
  #heldBytes: number | undefined;

  /** @param maxBytes while there is enough space on the disk. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @param storedBytes what the object holds now. */
  getBytes(storedBytes: number, nowMs: number): number {
    const isLow = getDiskShortage(nowMs) !== null;
    this.#heldBytes = isLow ? (this.#heldBytes ?? storedBytes) : undefined;
    if (this.#heldBytes === undefined) return this.#maxBytes;
    return Math.min(this.#maxBytes, Math.max(this.#heldBytes, LOW_DISK_MIN_BYTES));
  }
}
