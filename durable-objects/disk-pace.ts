/**
 * Spreads writes that may wait, so that visitors do not wait for a slow disk. On a self-hosted server a write of one object
 * holds up all others until it is on disk: workerd serves them on one thread, which waits for it (fsync). They share one pace: with it,
 * such writes hold up the process for a tenth of the time. On Cloudflare no object holds up others, and no write waits.
 */

/** The part of the time that such writes may take. */
const SHARE = 0.1;
/** A disk that is faster than this is not slow. */
const FAST_WRITE_MS = 4;
/** The fastest of so many writes counts: the others may have waited for other work of a busy process. */
const RECENT_WRITES = 8;
/**
 * How long a write waits at most. With its own delay it is less than the ten seconds after which an idle object is evicted with
 * what it has not written, and with a timer it prevents hibernation for no longer.
 */
const DISK_WAIT_MAX_MS = 8_000;

export class DiskPace {
  #recentMs: number[] = [];
  /** When the writes of all turns given out so far have had their share of the time. */
  #busyUntilMs = 0;

  /**
   * Takes a turn for one write.
   * @param maxWaitMs a turn comes no later than this, and then the writes may take more than their share.
   * @returns how long to wait until the turn; 0 while the disk is fast.
   */
  takeTurn(maxWaitMs = DISK_WAIT_MAX_MS): number {
    const now = Date.now();
    const fastestMs = this.#recentMs.length < RECENT_WRITES ? 0 : Math.min(...this.#recentMs);
    const isSlow = fastestMs >= FAST_WRITE_MS;
    const atMs = isSlow ? Math.min(Math.max(this.#busyUntilMs, now), now + maxWaitMs) : now;
    this.#busyUntilMs = atMs + fastestMs / SHARE;
    return atMs - now;
  }

  /**
   * Performs a write, and measures for how long it holds up this process: until the next pass of the event loop, which begins when
   * the write is on disk.
   * @param write returns whether it has written.
   */
  async measure(write: () => boolean): Promise<void> {
    const startMs = Date.now();
    if (!write()) return;
    await scheduler.wait(0);
    this.#recentMs = [...this.#recentMs.slice(1 - RECENT_WRITES), Date.now() - startMs];
  }
}

/** One for each isolate: its objects share the disk. */
export const diskPace = new DiskPace();
