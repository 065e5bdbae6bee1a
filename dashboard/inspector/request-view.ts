/**
 * The requests that an inspector lists: those of the store that match a filter, and older ones. While it follows, new requests
 * appear at the top. Otherwise they are only counted, so that nothing moves under the pointer of the user.
 */
import type { CaptureFilterQuery } from "../../protocol/captures/filter.ts";
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import { CaptureList } from "./capture-list.ts";
import { CAPTURES_PAGE_ROWS, type CapturesQuery } from "./captures-query.ts";

/** Beyond these, older requests are not loaded. */
const OLDER_CAPTURES_MAX = 10_000;
/** The page stays responsive while thousands of requests are filtered. */
const SLICE_MS = 8;

export interface CaptureListener {
  /** A request was added, or has a new state. */
  onPut: (capture: CaptureSummary) => void;
  /** All requests that are older than this one were dropped. */
  onTrim: (oldestId: string) => void;
  onStatus: () => void;
}

/** The newest requests, without gaps. */
export interface CaptureSource {
  readonly newest: CaptureList;
  /** Whether the server may have requests that are older than the oldest one here. */
  readonly hasOlder: boolean;
  /** @returns a function that removes the listener. */
  listen: (listener: CaptureListener) => () => void;
}

export interface RequestSelection {
  matches: (capture: CaptureSummary) => boolean;
  /** The part of the filter that the API can apply by itself. */
  query: CaptureFilterQuery & { tunnel_id?: string };
  /** Only these requests, instead of those of the store. */
  only: readonly CaptureSummary[] | undefined;
  /** Only requests with these ids: the results of a search in bodies. */
  foundIds: ReadonlySet<string> | undefined;
}

interface RequestViewOptions {
  store: CaptureSource;
  /** One page of older requests. */
  list: (query: CapturesQuery) => Promise<CaptureSummary[]>;
  /** Runs the function before the next frame. */
  schedule: (update: () => void) => unknown;
  /** The time in milliseconds: filtering many requests pauses for other work after some milliseconds. */
  now: () => number;
}

type State = "following" | "reading" | "paused";

export class RequestView {
  readonly #options: RequestViewOptions;
  readonly #store: CaptureSource;
  #selection: RequestSelection = {
    matches: () => true,
    query: {},
    only: undefined,
    foundIds: undefined,
  };
  #matched = new CaptureList();
  /** While the view does not follow: what it showed at that time, newest first. */
  #frozen: CaptureSummary[] | undefined;
  #state: State = "following";
  #newCount = 0;
  /** Requests that were added since the rows were last shown. */
  #notShown = new WeakSet<CaptureSummary>();
  /** Requests that arrive while the filter is applied. */
  #waiting: CaptureSummary[] | undefined;
  #filterRun = 0;
  /** Requests up to this id are hidden. */
  #clearedId = "";
  /** The oldest request that was loaded in addition to those of the store. */
  #olderId: string | undefined;
  #olderCount = 0;
  #hasOlder = true;
  #isLoadingOlder = false;
  #olderError: unknown;
  #version = 0;
  #isScheduled = false;
  readonly #listeners = new Set<() => void>();

  constructor(options: RequestViewOptions) {
    this.#options = options;
    this.#store = options.store;
    this.select(this.#selection);
  }

  /** For `useSyncExternalStore`. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly getVersion = (): number => this.#version;

  /** Shows the changes of the store from now on. @returns a function that ends this. */
  connect(): () => void {
    const listener: CaptureListener = {
      onPut: (capture) => this.#receive(capture),
      onTrim: (oldestId) => this.#trim(oldestId),
      onStatus: () => this.#update(),
    };
    const stop = this.#store.listen(listener);
    // The store may have changed since the view was created.
    this.select(this.#selection);
    return stop;
  }

  get count(): number {
    return this.#frozen?.length ?? this.#matched.size;
  }

  /** How many requests were compared with the filter. */
  get searchedCount(): number {
    return (this.#selection.only?.length ?? this.#store.newest.size) + this.#olderCount;
  }

  /** Matching requests that arrived since the view stopped following. */
  get newCount(): number {
    return this.#newCount;
  }

  get state(): State {
    return this.#state;
  }

  get isFiltering(): boolean {
    return this.#waiting !== undefined;
  }

  get isLoadingOlder(): boolean {
    return this.#isLoadingOlder;
  }

  get olderError(): unknown {
    return this.#olderError;
  }

  /** Whether the server may have older requests that match. */
  get hasOlder(): boolean {
    const { only, foundIds, query } = this.#selection;
    if (only !== undefined || foundIds !== undefined || this.isCleared) return false;
    if (this.#olderCount >= OLDER_CAPTURES_MAX) return false;
    if (this.#olderId !== undefined || !this.#hasOlder) return this.#hasOlder;
    // The store has the tunnels that were served last.
    return this.#store.hasOlder || query.tunnel_id !== undefined;
  }

  get isCleared(): boolean {
    return this.#clearedId !== "";
  }

  /** @param index 0 is the newest. */
  getRow(index: number): CaptureSummary | undefined {
    if (this.#frozen === undefined) return this.#matched.getNewest(index);
    const row = this.#frozen[index];
    return row && (this.#store.newest.get(row.id) ?? row);
  }

  /** @returns -1 when the view does not list it. */
  findIndex(id: string): number {
    if (this.#frozen === undefined) return this.#matched.findIndex(id);
    return this.#frozen.findIndex((row) => row.id === id);
  }

  /** The newest requests that match the filter, whether or not a search has found them. */
  getFiltered(maxRows: number): CaptureSummary[] {
    const { only, matches } = this.#selection;
    return (only ?? this.#store.newest.toArray()).filter(matches).slice(0, maxRows);
  }

  /** Applies a filter. The rows stay as they were until the new ones are known. */
  select(selection: RequestSelection): void {
    this.#selection = selection;
    this.#olderId = undefined;
    this.#olderCount = 0;
    this.#olderError = undefined;
    this.#hasOlder = true;
    this.#waiting = [];
    this.#filterRun += 1;
    void this.#filter(this.#filterRun);
  }

  follow(): void {
    this.#state = "following";
    this.#frozen = undefined;
    this.#newCount = 0;
    this.#update();
  }

  /**
   * The rows stay as they are shown now: a row that the pointer is on does not move before it is released.
   * @param state `reading`: until the user returns to the top. `paused`: until the user resumes.
   */
  freeze(state: "reading" | "paused"): void {
    if (this.#state === "paused") return;
    this.#state = state;
    if (this.#frozen === undefined) {
      this.#frozen = this.#matched.toArray().filter((row) => !this.#notShown.has(row));
      this.#newCount = this.#matched.size - this.#frozen.length;
    }
    this.#update();
  }

  /** Hides all requests until now. */
  clear(): void {
    this.#clearedId = this.#store.newest.newestId ?? "";
    this.select(this.#selection);
  }

  undoClear(): void {
    this.#clearedId = "";
    this.select(this.#selection);
  }

  async loadOlder(): Promise<void> {
    if (this.#isLoadingOlder || !this.hasOlder || this.isFiltering) return;
    const run = this.#filterRun;
    const { query } = this.#selection;
    const after = this.#olderId ?? this.#store.newest.oldestId;
    this.#isLoadingOlder = true;
    this.#olderError = undefined;
    this.#update();
    try {
      const page = await this.#options.list({ ...query, ...(after !== undefined && { after }) });
      if (run === this.#filterRun) this.#addOlder(page, after);
    } catch (error) {
      this.#olderError = error;
    }
    this.#isLoadingOlder = false;
    this.#update();
  }

  #addOlder(page: CaptureSummary[], after: string | undefined): void {
    // The store dropped requests meanwhile, so that this page does not continue it.
    if (this.#olderId === undefined && after !== this.#store.newest.oldestId) return;
    this.#olderId = page.at(-1)?.id ?? after;
    this.#olderCount += page.length;
    this.#hasOlder = page.length === CAPTURES_PAGE_ROWS;
    // Requests that the store has dropped can still be shown.
    const shownId = this.#frozen?.at(-1)?.id;
    for (const capture of page) {
      if (!this.#matches(capture) || this.#matched.put(capture) !== "added") continue;
      if (shownId === undefined || capture.id < shownId) this.#frozen?.push(capture);
    }
  }

  async #filter(run: number): Promise<void> {
    const { now } = this.#options;
    const startMs = now();
    const rows = this.#selection.only ?? this.#store.newest.toArray();
    const matched = new CaptureList();
    let sliceEndMs = startMs + SLICE_MS;
    for (const row of rows.toReversed()) {
      if (this.#matches(row)) matched.put(row);
      if (now() < sliceEndMs) continue;
      this.#update();
      await new Promise((resolve) => setTimeout(resolve));
      if (run !== this.#filterRun) return;
      sliceEndMs = now() + SLICE_MS;
    }
    this.#matched = matched;
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const capture of waiting) this.#receive(capture);
    if (this.#frozen) this.#frozen = this.#matched.toArray();
    this.#newCount = 0;
    performance.measure("filter requests", { start: startMs });
    this.#update();
  }

  #matches(capture: CaptureSummary): boolean {
    const { matches, foundIds } = this.#selection;
    if (capture.id <= this.#clearedId || foundIds?.has(capture.id) === false) return false;
    return matches(capture);
  }

  #receive(capture: CaptureSummary): void {
    if (this.#waiting) this.#waiting.push(capture);
    else if (this.#selection.only !== undefined) return;
    else if (!this.#matches(capture)) this.#matched.delete(capture.id);
    else if (this.#matched.put(capture) === "added") {
      if (this.#frozen) this.#newCount += 1;
      else this.#notShown.add(capture);
    }
    this.#update();
  }

  /**
   * The store has dropped its oldest requests. Those that this view has loaded beyond them are removed too, because there would be
   * a gap before them.
   */
  #trim(oldestId: string): void {
    if (this.#selection.only !== undefined) return;
    this.#matched.deleteOlderThan(oldestId);
    this.#olderId = undefined;
    this.#olderCount = 0;
    this.#hasOlder = true;
    this.#update();
  }

  #update(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#options.schedule(() => {
      this.#isScheduled = false;
      this.#version += 1;
      for (const notify of this.#listeners) notify();
      this.#notShown = new WeakSet();
    });
  }
}
