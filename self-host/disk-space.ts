/**
 * The free space on the disk of the data directory. While it is less than the reserve, tunnels and webhook receivers store
 * no more than they hold already, and while it is less than half of the reserve, nothing (`durable-objects/low-disk.ts`): a
 * full disk would stop PostgreSQL, and all of the service with it. `/ready` reports the shortage.
 */
import { statfs } from "node:fs/promises";
import { setInterval } from "node:timers/promises";
import type { DiskShortage } from "../protocol/self-host/disk-shortage.ts";
import { toSingleValue, type MetricFamily } from "../shared/metrics/exposition.ts";
import { getErrorMessage } from "../shared/error-message.ts";
import { SECOND_MS } from "../shared/time.ts";
import type { Log } from "./log.ts";

/** Captures and deliveries write less than a tenth of the reserve in this time. */
const CHECK_INTERVAL_MS = SECOND_MS;
const RESERVE_MAX_BYTES = 1024 ** 3;
/** The reserve's share of a small disk, unless the operator sets the reserve. */
const RESERVE_SHARE = 1 / 20;
/** With less, a transaction or an object may need more than what is free. */
const FULL_BYTES = 1024 ** 2;
/** A full disk has space again with this much, so that what is written in the meantime does not fill it at once. */
const NO_LONGER_FULL_BYTES = 4 * FULL_BYTES;
/** Above the reserve by this factor, there is enough space again. */
const RECOVERED_FACTOR = 1.1;

export interface DiskSpace {
  /** What the server may still write. */
  freeBytes: number;
  sizeBytes: number;
}

interface DiskWatchOptions {
  readSpace: () => Promise<DiskSpace>;
  /** undefined: a share of the disk. 0: the disk may become full. */
  reserveBytes: number | undefined;
  /** Called at each check while there is too little space. */
  reportLow: (shortage: DiskShortage) => Promise<void>;
  log: Log;
}

export class DiskWatch {
  readonly #options: DiskWatchOptions;
  readonly #stopping = new AbortController();
  #shortage: DiskShortage | null = null;
  /** The last check failed. */
  #hasFailed = false;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
  }

  /** Checks every second until `stop`. */
  async run(): Promise<void> {
    const { signal } = this.#stopping;
    try {
      for await (const _ of setInterval(CHECK_INTERVAL_MS, undefined, { signal, ref: false }))
        await this.check();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  async check(): Promise<void> {
    const { readSpace, reportLow, log } = this.#options;
    try {
      this.#recordSpace(await readSpace());
      if (this.#shortage) await reportLow(this.#shortage);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) log.warn(`disk: a check failed: ${getErrorMessage(error)}`);
      this.#hasFailed = true;
    }
  }

  async collectMetrics(): Promise<MetricFamily[]> {
    const space = await this.#options.readSpace();
    return [
      toSingleValue(
        "gauge",
        "underpass_server_disk_free_bytes",
        "Free space on the disk of the data directory.",
        space.freeBytes,
      ),
      toSingleValue(
        "gauge",
        "underpass_server_disk_size_bytes",
        "Size of the disk of the data directory.",
        space.sizeBytes,
      ),
      toSingleValue(
        "gauge",
        "underpass_server_disk_reserve_bytes",
        "With less free space than this, captures and deliveries take up no more of the disk.",
        this.#getReserve(space),
      ),
    ];
  }

  #recordSpace(space: DiskSpace): void {
    const { log } = this.#options;
    const earlier = this.#shortage;
    this.#shortage = this.#findShortage(space);
    if (this.#shortage === earlier) return;
    const fields = { freeBytes: space.freeBytes, reserveBytes: this.#getReserve(space) };
    if (this.#shortage === "full") {
      log.error("disk: full; tunnels and changes fail until there is space again", fields);
    } else if (this.#shortage === null) {
      log.info("disk: there is enough free space again", fields);
    } else if (earlier === null) {
      log.warn(
        "disk: almost full; captures and webhook deliveries take up no more of it until there is space again",
        fields,
      );
    }
  }

  #findShortage(space: DiskSpace): DiskShortage | null {
    const { freeBytes } = space;
    const reserveBytes = this.#getReserve(space);
    const fullBytes = this.#shortage === "full" ? NO_LONGER_FULL_BYTES : FULL_BYTES;
    if (freeBytes < fullBytes) return "full";
    if (freeBytes < reserveBytes / 2) return "critical";
    return freeBytes < reserveBytes * (this.#shortage ? RECOVERED_FACTOR : 1) ? "low" : null;
  }

  #getReserve({ sizeBytes }: DiskSpace): number {
    return this.#options.reserveBytes ?? Math.min(RESERVE_MAX_BYTES, sizeBytes * RESERVE_SHARE);
  }
}

/** @param directory anywhere on the disk. */
export async function readDiskSpace(directory: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(directory);
  return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
}
