/**
 * Captured requests in the order of time: stored ones, then new ones as they happen. After a lost connection the
 * requests that were missed are read from the list, so that none is missing and none is repeated.
 */
import { EventEmitter } from "node:events";
import type { CaptureExpression } from "../../protocol/captures/filter.ts";
import { getCatchUpStart } from "../../protocol/captures/watch-protocol.ts";
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { RejectionError } from "../rejection-error.ts";
import type { CaptureWatch } from "./capture-watch.ts";
import type { ManagementApi } from "./management-api.ts";

/** Requests that arrive while stored ones are read. Further ones are counted as missed. */
const WAITING_MAX = 10_000;
/** The latest requests, so that none is shown twice. */
const SEEN_MAX = 20_000;
/** How many requests are read at most after a reconnect. */
const CATCH_UP_MAX = 10_000;

interface LogSelection {
  /** undefined: all tunnels. */
  tunnelId: string | undefined;
  filter: CaptureExpression;
}

export interface PastSelection {
  /** RFC 3339; undefined: as old as they are stored. */
  since: string | undefined;
  limit: number;
}

interface Events {
  /** Stored requests were shown; new ones follow. */
  ready: [];
  capture: [CaptureSummary];
  missed: [count: number];
  disconnected: [reason: string];
  reconnected: [];
}

/** The newest stored requests that match, oldest first. */
export async function readPastCaptures(
  api: ManagementApi,
  { tunnelId, filter }: LogSelection,
  { since, limit }: PastSelection,
  signal?: AbortSignal,
): Promise<CaptureSummary[]> {
  const found: CaptureSummary[] = [];
  const query = { ...filter.query, tunnel_id: tunnelId, since };
  for await (const page of api.listCaptures(query, signal)) {
    found.push(...page.filter(filter.matches).slice(0, limit - found.length));
    if (found.length >= limit) break;
  }
  return found.reverse();
}

export class CaptureLog extends EventEmitter<Events> {
  readonly #api: ManagementApi;
  readonly #watch: CaptureWatch;
  readonly #selection: LogSelection;
  readonly #past: PastSelection | undefined;
  readonly #stop = new AbortController();
  /** The last state of each request by its id. */
  readonly #seen = new BoundedMap<string, CaptureSummary["state"]>(SEEN_MAX);
  /** Requests up to this id are older than the start. */
  #startId = "";
  #newestId = "";
  #waiting: CaptureSummary[] | undefined;
  #hasStarted = false;

  /** @param past the stored requests to begin with; undefined: none. */
  constructor(
    api: ManagementApi,
    watch: CaptureWatch,
    selection: LogSelection,
    past: PastSelection | undefined,
  ) {
    super();
    this.#api = api;
    this.#watch = watch;
    this.#selection = selection;
    this.#past = past;
  }

  /** Resolves after `stop()`. @throws RejectionError when the server rejects the watcher permanently. */
  async run(): Promise<void> {
    const { signal } = this.#stop;
    const watch = this.#watch;
    try {
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener("abort", () => resolve());
        watch.on("rejected", reject);
        watch.on("watching", () => void this.#handleWatching().catch(reject));
        watch.on("captures", (captures) => this.#receive(captures));
        watch.on("missed", (count) => this.emit("missed", count));
        watch.on("disconnected", (reason) => this.emit("disconnected", reason));
        watch.start();
      });
    } finally {
      watch.close();
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  /** New requests wait until the stored ones, which are older, were shown. */
  async #handleWatching(): Promise<void> {
    const isFirst = !this.#hasStarted;
    this.#hasStarted = true;
    if (!isFirst) this.emit("reconnected");
    this.#waiting ??= [];
    try {
      for (const capture of isFirst ? await this.#readStart() : await this.#readMissing()) {
        this.#show(capture);
      }
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const isTemporary = error instanceof RejectionError && error.reason === "unavailable";
      if (!isTemporary) throw error;
      // The watch itself works: only what happened before it is missing.
      this.emit("missed", 0);
    }
    const waiting = this.#waiting;
    this.#waiting = undefined;
    for (const capture of waiting ?? []) this.#show(capture);
    if (isFirst) this.emit("ready");
  }

  async #readStart(): Promise<CaptureSummary[]> {
    const { signal } = this.#stop;
    const { tunnelId } = this.#selection;
    for await (const [newest] of this.#api.listCaptures({ tunnel_id: tunnelId }, signal, 1)) {
      this.#startId = newest?.id ?? "";
      this.#newestId = this.#startId;
      break;
    }
    if (!this.#past) return [];
    return readPastCaptures(this.#api, this.#selection, this.#past, signal);
  }

  async #readMissing(): Promise<CaptureSummary[]> {
    const oldestId = this.#newestId === "" ? "" : getCatchUpStart(this.#newestId);
    const missing: CaptureSummary[] = [];
    const query = { ...this.#selection.filter.query, tunnel_id: this.#selection.tunnelId };
    for await (const page of this.#api.listCaptures(query, this.#stop.signal)) {
      const recent = page.filter(({ id }) => id > oldestId && id > this.#startId);
      missing.push(...recent);
      if (recent.length < page.length || missing.length >= CATCH_UP_MAX) break;
    }
    return missing.slice(0, CATCH_UP_MAX).reverse();
  }

  #receive(captures: CaptureSummary[]): void {
    for (const capture of captures) {
      if (!this.#waiting) this.#show(capture);
      else if (this.#waiting.length < WAITING_MAX) this.#waiting.push(capture);
      else this.emit("missed", 1);
    }
  }

  #show(capture: CaptureSummary): void {
    const { id, state } = capture;
    const seen = this.#seen.get(id);
    // The list may be older than what was received: a request does not open again.
    if (seen === state || (seen !== undefined && seen !== "open")) return;
    this.#seen.set(id, state);
    if (id > this.#newestId) this.#newestId = id;
    if (this.#selection.filter.matches(capture)) this.emit("capture", capture);
  }
}
