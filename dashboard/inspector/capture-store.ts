/**
 * The newest captured requests of the organization, without gaps: those that are stored, then new ones as they happen. After a
 * lost connection, the requests that were missed are read from the list. All inspectors of the page share one store.
 */
import { getCatchUpStart } from "../../protocol/captures/watch-protocol.ts";
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import { CaptureList } from "./capture-list.ts";
import { CAPTURES_PAGE_ROWS, type CapturesQuery } from "./captures-query.ts";
import type { CaptureListener, CaptureSource } from "./request-view.ts";

/** Older requests are dropped. */
const NEWEST_CAPTURES_MAX = 10_000;
/** The pause between two readings of the list, after a failure or when the server did not send some requests. */
const CATCH_UP_PAUSE_MS = 3_000;
/** How long the connection stays open without a listener, such as from one page to the next. */
const CLOSE_DELAY_MS = 1_000;

/**
 * `loading`: nothing has been read yet. `connecting`, and `reconnecting` after a lost connection: new requests will appear
 * later.
 */
type CaptureStoreStatus = "loading" | "connecting" | "live" | "reconnecting";

export interface CaptureWatchEvents {
  /** Requests that end from now on are received. */
  onOpen: () => void;
  onCaptures: (captures: readonly CaptureSummary[]) => void;
  /** The server did not send some requests, because they were received too slowly. */
  onMissed: () => void;
  onClose: () => void;
}

/** How the store reads requests from the server. */
interface CaptureServer {
  /** One page of stored requests, newest first. */
  list: (query: CapturesQuery) => Promise<CaptureSummary[]>;
  /** Requests as they happen. @returns a function that ends the connection. */
  watch: (events: CaptureWatchEvents) => () => void;
}

export class CaptureStore implements CaptureSource {
  readonly newest = new CaptureList();
  hasOlder = true;
  /** Why the last reading of the list failed; undefined after one that succeeded. */
  error: unknown;
  readonly #server: CaptureServer;
  readonly #listeners = new Set<CaptureListener>();
  #stopWatch: (() => void) | undefined;
  #closing: ReturnType<typeof setTimeout> | undefined;
  #isLoaded = false;
  #isConnected = false;
  /** Whether the connection was lost since the store was opened. */
  #wasLost = false;
  #isBehind = false;
  #isReading = false;

  constructor(server: CaptureServer) {
    this.#server = server;
  }

  get status(): CaptureStoreStatus {
    if (!this.#isLoaded) return "loading";
    if (this.#isConnected) return "live";
    return this.#wasLost ? "reconnecting" : "connecting";
  }

  /** The store is connected while it has a listener. @returns a function that removes the listener. */
  listen(listener: CaptureListener): () => void {
    this.#listeners.add(listener);
    clearTimeout(this.#closing);
    if (this.#stopWatch === undefined) this.#open();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#closing = setTimeout(() => this.#close(), CLOSE_DELAY_MS);
    };
  }

  put(captures: readonly CaptureSummary[]): void {
    for (const capture of captures) {
      if (this.newest.put(capture) === "unchanged") continue;
      for (const { onPut } of this.#listeners) onPut(capture);
    }
    if (this.newest.keepNewest(NEWEST_CAPTURES_MAX) > 0) this.#handleTrim();
  }

  /** Reads the requests that are missing here, after the reading that is in progress. */
  catchUp(): void {
    this.#isBehind = true;
    if (!this.#isReading) void this.#read();
  }

  #open(): void {
    this.#stopWatch = this.#server.watch({
      onOpen: () => {
        this.#isConnected = true;
        this.catchUp();
      },
      onCaptures: (captures) => this.put(captures),
      onMissed: () => this.catchUp(),
      onClose: () => {
        this.#isConnected = false;
        this.#wasLost = true;
        this.#handleStatus();
      },
    });
    this.catchUp();
  }

  #close(): void {
    this.#stopWatch?.();
    this.#stopWatch = undefined;
    this.#isConnected = false;
    this.#wasLost = false;
    this.#isBehind = false;
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    while (this.#isBehind) {
      this.#isBehind = false;
      const isFirst = !this.#isLoaded;
      try {
        await this.#readMissing();
        this.#isLoaded = true;
        this.error = undefined;
      } catch (error) {
        this.error = error;
        this.#isBehind = this.#stopWatch !== undefined;
      }
      this.#handleStatus();
      // The connection may open during the first reading, whose result misses what ended just before that.
      const isUrgent = isFirst && this.#isLoaded;
      if (this.#isBehind && !isUrgent) await pause(CATCH_UP_PAUSE_MS);
    }
    this.#isReading = false;
  }

  async #readMissing(): Promise<void> {
    const { newestId } = this.newest;
    if (newestId === undefined) {
      const page = await this.#server.list({});
      this.hasOlder = page.length === CAPTURES_PAGE_ROWS;
      this.put(page);
      return;
    }
    const knownId = getCatchUpStart(newestId);
    let after: string | undefined;
    for (let rows = 0; rows < NEWEST_CAPTURES_MAX; rows += CAPTURES_PAGE_ROWS) {
      const page = await this.#server.list(after === undefined ? {} : { after });
      this.put(page);
      after = page.at(-1)?.id;
      if (page.length < CAPTURES_PAGE_ROWS || after === undefined || after < knownId) return;
    }
    // Between these requests and those from before, some are missing.
    if (after !== undefined && this.newest.deleteOlderThan(after) > 0) this.#handleTrim();
  }

  #handleTrim(): void {
    this.hasOlder = true;
    const { oldestId = "" } = this.newest;
    for (const { onTrim } of this.#listeners) onTrim(oldestId);
  }

  #handleStatus(): void {
    for (const { onStatus } of this.#listeners) onStatus();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
