/**
 * All captures of a tunnel: starts a recording for each request, writes captures in batches, at most once a second,
 * enforces the plan's retention and the tunnel's storage limit, and notifies watchers.
 */
import { CaptureIdGenerator, getCaptureTimeMs } from "../../../protocol/captures/id.ts";
import type { CapturedVisit } from "../../../access/policy-dry-run.ts";
import { diskPace } from "../../disk-pace.ts";
import { isDiskCritical, StorageLimit } from "../../low-disk.ts";
import type {
  CaptureDetail,
  CaptureFilter,
  CaptureSummary,
  VersionedCaptureSettings,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { Alarm } from "../alarm.ts";
import { BreakdownCounter, type CaptureBreakdown } from "./reading/breakdown.ts";
import { CaptureLookup, readDetails } from "./reading/capture-lookup.ts";
import { addAuthorization } from "./reading/authorization.ts";
import { StoredRecords } from "./reading/stored-records.ts";
import { CaptureStore } from "./capture-store.ts";
import type { CaptureFeed } from "./feed.ts";
import { CaptureMemory } from "./memory.ts";
import {
  matchesFilter,
  toSummary,
  skipDroppedPages,
  toVisit,
  type Capture,
  type CaptureRecord,
} from "./record.ts";
import { OpenRecordings } from "./open-recordings.ts";
import { Recording, type RecordingObserver, type RecordedRequest } from "./recording.ts";
import { StoredCaptureSettings } from "./settings.ts";
import { UnwrittenCaptures, type UnwrittenPart } from "./unwritten-captures.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/**
 * Heads, bodies and messages of all exchanges of a tunnel, until they are written. Beyond it bodies are cut, and headers and
 * messages are left out, as they are when too much was written (`WRITTEN_BYTES`).
 */
export const CAPTURE_MEMORY_MAX_BYTES = 16 * 1024 * 1024;
/** An exchange that is open for longer is stored while it is open, in a row of its own. */
const CAPTURE_LONG_MS = 1_000;
/** A tunnel's storage, everything included. Beyond it the oldest captures are dropped. */
export const CAPTURES_STORED_MAX_BYTES = 64 * 1024 * 1024;
/** How much may be written before the limit is checked again. */
const CAPTURES_CHECK_BYTES = 1024 * 1024;
/** Pages that are dropped before yielding to other events. A large one takes about a millisecond. */
const CAPTURES_DROP_BATCH = 8;
/** After this time the first captures are written. */
const CAPTURE_WRITE_DELAY_MS = 100;
/**
 * The shortest time between two writes, unless they are large; on a slow disk up to 8 s longer. A crash loses the
 * captures of this time at most.
 */
const CAPTURE_WRITE_INTERVAL_MS = 1_000;
/** This many bytes of bodies and messages, including those of open exchanges, are written without waiting any longer. */
const LARGE_WRITE_BYTES = 1024 * 1024;
/** The shortest time until the next retention check. */
const RETENTION_CHECK_MIN_MS = MINUTE_MS;

const CLEARED_UNTIL_KEY = "captures-cleared-until";

interface CapturesDeps {
  tunnelId(): string | undefined;
  shard(): number;
  alarm: Alarm;
  feed: CaptureFeed;
  /** Nothing is captured for a retired tunnel. */
  isRetired: boolean;
}

export class Captures implements RecordingObserver {
  readonly memory: CaptureMemory;
  readonly #store: CaptureStore;
  readonly #limit = new StorageLimit(CAPTURES_STORED_MAX_BYTES);
  readonly #records: StoredRecords;
  readonly #settings: StoredCaptureSettings;
  readonly #kv: SyncKvStorage;
  readonly #deps: CapturesDeps;
  #isRetired: boolean;
  #clearedUntilMs: number;
  #ids: CaptureIdGenerator | undefined;
  readonly #open = new OpenRecordings({
    readRow: (id) => this.#store.findLongLived(id),
    resume: (row) => Recording.resume(this, this.#settings, row),
  });
  readonly #unwritten = new UnwrittenCaptures();
  #isWriteScheduled = false;
  #writtenAtMs = 0;
  #uncheckedBytes = 0;
  #isRetentionScheduled = false;

  constructor(storage: DurableObjectStorage, tunnel: CapturesDeps) {
    this.memory = new CaptureMemory(CAPTURE_MEMORY_MAX_BYTES, Date.now, storage);
    this.#store = new CaptureStore(storage);
    this.#records = new StoredRecords(storage.kv, this.#store);
    this.#settings = new StoredCaptureSettings(storage.kv);
    this.#kv = storage.kv;
    this.#deps = tunnel;
    this.#isRetired = tunnel.isRetired;
    this.#clearedUntilMs = storage.kv.get<number>(CLEARED_UNTIL_KEY) ?? 0;
  }

  // ── Called by workers ──

  publish(settings: VersionedCaptureSettings): void {
    this.#settings.publish(settings);
    this.#isRetentionScheduled = false;
    this.#scheduleRetention();
  }

  setRetention(version: number, retentionDays: number): void {
    this.#settings.setRetention(version, retentionDays);
  }

  /** As they were last published; undefined before that. */
  get publishedSettings(): VersionedCaptureSettings | undefined {
    return this.#settings.published;
  }

  get allowsReplay(): boolean {
    return this.#settings.allowReplay;
  }

  async list(filter: CaptureFilter): Promise<CaptureSummary[]> {
    const tunnelId = this.#deps.tunnelId();
    if (tunnelId === undefined || this.#isRetired) return [];
    this.flush();
    const summaries: CaptureSummary[] = [];
    const fromMs = Math.max(this.#retainedSinceMs, filter.sinceMs ?? 0);
    for await (const record of this.#records.list(fromMs, filter.after)) {
      if (summaries.length >= filter.limit) break;
      if (matchesFilter(record, filter))
        summaries.push(toSummary(this.#withLiveState(record), tunnelId));
    }
    return summaries;
  }

  /** Counts the newest captures that began at `sinceMs` or later, up to `maxRequests`. */
  async breakDown(sinceMs: number, maxRequests: number): Promise<CaptureBreakdown> {
    const counter = new BreakdownCounter();
    if (this.#isRetired) return counter.finish({ isComplete: true });
    this.flush();
    for await (const record of this.#records.list(Math.max(this.#retainedSinceMs, sinceMs))) {
      if (counter.requests >= maxRequests) return counter.finish({ isComplete: false });
      counter.count(this.#withLiveState(record));
    }
    return counter.finish({ isComplete: true });
  }

  /**
   * The newest requests of visitors, oldest first.
   * @param readsHeaders whether their `authorization` is needed, for which the headers of all requests are read.
   */
  async listVisits(limit: number, readsHeaders: boolean): Promise<CapturedVisit[]> {
    if (this.#isRetired) return [];
    this.flush();
    const visits: CapturedVisit[] = [];
    for await (const record of this.#records.list(this.#retainedSinceMs)) {
      if (visits.length >= limit) break;
      // The access policy does not apply to replays.
      if (record.replayOf === null) visits.push(toVisit(this.#withLiveState(record)));
    }
    visits.reverse();
    if (readsHeaders) await addAuthorization(visits, this.#records);
    return visits;
  }

  /** The first of these, as many as fit into one answer; null for those that are not stored. */
  async findDetails(ids: string[]): Promise<(CaptureDetail | null)[]> {
    const tunnelId = this.#deps.tunnelId();
    if (tunnelId === undefined) return ids.map(() => null);
    const lookup = new CaptureLookup(this.#kv, this.#records.queue);
    return readDetails(ids, lookup, (id) => this.find(id, lookup), tunnelId);
  }

  find(id: string, lookup = new CaptureLookup(this.#kv, this.#records.queue)): Capture | undefined {
    this.flush();
    const recording = this.#open.findLongLived(id);
    if (!recording && getCaptureTimeMs(id) < this.#retainedSinceMs) return undefined;
    const stored = lookup.find(id);
    if (!recording) return stored && { ...stored, record: this.#withLiveState(stored.record) };
    const { record, lines, bodies, log } = recording;
    return { record, lines, bodies, log, entries: stored?.entries ?? [] };
  }

  /**
   * Captures that began at `untilMs` or earlier are no longer listed. An open one can be found by its id until it ends.
   * A page that also contains newer captures stays on disk as long as they do.
   */
  async clear(untilMs: number): Promise<void> {
    this.flush();
    this.#clearedUntilMs = Math.max(this.#clearedUntilMs, Math.min(untilMs, Date.now()));
    this.#kv.put<number>(CLEARED_UNTIL_KEY, this.#clearedUntilMs);
    await this.#enforceLimits();
  }

  /** Permanent. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    this.#settings.remove();
    this.memory.deleteStored();
    this.#kv.delete(CLEARED_UNTIL_KEY);
    await this.#enforceLimits();
  }

  /** Writes every capture, so that whatever is read from the storage is complete. */
  flush(): void {
    this.#promoteUntil(Infinity);
    this.#write("all");
  }

  // ── Called by exchanges and sockets ──

  /** @returns null when the request is not captured. */
  startRecording(request: RecordedRequest): Recording | null {
    if (!this.#settings.isOn || this.#isRetired) return null;
    return this.#start(request);
  }

  /** A replay is always captured: the capture is its result. */
  startReplayRecording(request: RecordedRequest): Recording | null {
    return this.#isRetired ? null : this.#start(request);
  }

  /** Called for each WebSocket when the object wakes up from hibernation. */
  resumeRecording(id: string): void {
    if (!this.#isRetired) this.#open.addHibernated(id);
  }

  /** The recording of a WebSocket; undefined when it has ended. */
  findRecording(id: string): Recording | undefined {
    return this.#open.findLongLived(id);
  }

  onLongLived(recording: Recording): void {
    this.#promote(recording);
    this.#notifyWatchers(recording);
  }

  onChanged(recording: Recording): void {
    this.#unwritten.addChanged(recording);
    void this.#writeAfterDelay();
  }

  onEnded(recording: Recording): void {
    this.#open.remove(recording);
    this.#unwritten.addEnded(recording);
    void this.#writeAfterDelay();
    this.#notifyWatchers(recording);
  }

  // ── Called by the alarm ──

  async onAlarm(): Promise<void> {
    this.#isRetentionScheduled = false;
    await this.#enforceLimits();
    this.#scheduleRetention();
  }

  // ── Inside ──

  #start(request: RecordedRequest): Recording | null {
    const ids = (this.#ids ??= this.#createIds());
    if (!ids) return null;
    const atMs = Date.now();
    const id = ids.next(atMs);
    const recording = new Recording(this, this.#settings, { id, atMs }, request);
    this.#open.add(recording);
    void this.#writeAfterDelay();
    return recording;
  }

  #createIds(): CaptureIdGenerator | undefined {
    const id = this.#deps.tunnelId();
    return id === undefined ? undefined : new CaptureIdGenerator(id, this.#deps.shard());
  }

  get #retainedSinceMs(): number {
    if (this.#isRetired) return Infinity;
    return Math.max(Date.now() - this.#settings.retentionMs, this.#clearedUntilMs + 1);
  }

  /** The stored record of an open exchange is outdated; one without a recording was open when the object stopped. */
  #withLiveState(record: CaptureRecord): CaptureRecord {
    if (record.state !== "open" || this.#open.isHibernated(record.id)) return record;
    return this.#open.findLongLived(record.id)?.record ?? { ...record, state: "aborted" };
  }

  #notifyWatchers(recording: Recording): void {
    const { feed } = this.#deps;
    if (!feed.isWatched) return;
    const tunnelId = this.#deps.tunnelId();
    if (tunnelId !== undefined) feed.add(toSummary(recording.record, tunnelId));
  }

  #promote(recording: Recording): void {
    if (this.#open.promote(recording)) this.onChanged(recording);
  }

  async #writeAfterDelay(): Promise<void> {
    if (this.#isWriteScheduled) return;
    this.#isWriteScheduled = true;
    await this.#waitUntil(() => this.#isWriteDue, CAPTURE_WRITE_INTERVAL_MS);
    if (this.#unwritten.count > 0) {
      const hasMuch = () => this.#unwritten.isLarge || this.memory.bodyBytes >= LARGE_WRITE_BYTES;
      await this.#waitUntil(hasMuch, diskPace.takeTurn());
    }
    await diskPace.measure(() => {
      this.#isWriteScheduled = false;
      // The row of an open exchange is written repeatedly: it waits while messages are not stored.
      return this.#write(this.memory.admits("entry") ? "all" : "ended");
    });
  }

  async #waitUntil(isDue: () => boolean, maxMs: number): Promise<void> {
    // Counted, because the clock may be set back.
    for (let waitMs = maxMs; waitMs > 0; waitMs -= CAPTURE_WRITE_DELAY_MS) {
      await scheduler.wait(CAPTURE_WRITE_DELAY_MS);
      this.#promoteUntil(Date.now() - CAPTURE_LONG_MS);
      if (isDue()) return;
    }
  }

  get #isWriteDue(): boolean {
    return (
      this.#unwritten.count === 0 ||
      this.#unwritten.isPageful ||
      this.memory.bodyBytes >= LARGE_WRITE_BYTES ||
      Date.now() >= this.#writtenAtMs + CAPTURE_WRITE_INTERVAL_MS
    );
  }

  /** Recordings that began at `untilMs` or earlier are open for long, and are written before they end. */
  #promoteUntil(untilMs: number): void {
    for (const recording of this.#open.listRecent(untilMs)) {
      this.#promote(recording);
      this.#notifyWatchers(recording);
    }
  }

  /** @returns whether anything was written. */
  #write(which: UnwrittenPart): boolean {
    const { finalized, longLived } = this.#unwritten.take(which);
    const maxBytes = this.#limit.getBytes(this.#store.storedBytes, Date.now());
    const isStored = !this.#isRetired && !isDiskCritical(Date.now());
    const hasWritten = isStored && (finalized.length > 0 || longLived.length > 0);
    try {
      if (!isStored) {
        for (const recording of longLived) recording.log.total += recording.takeEntries().count;
      } else if (hasWritten) {
        this.#writtenAtMs = Date.now();
        const writtenBytes = this.#store.write(finalized, longLived);
        this.memory.countWritten(writtenBytes);
        this.#uncheckedBytes += writtenBytes;
      }
    } finally {
      const ended = [...finalized, ...longLived.filter(({ isOpen }) => !isOpen)];
      for (const capture of ended) this.memory.releaseCapture(capture);
    }
    if (this.#open.hasRecent || this.#unwritten.count > 0) void this.#writeAfterDelay();
    const isLimited = maxBytes < CAPTURES_STORED_MAX_BYTES;
    const isDue = isLimited || this.#uncheckedBytes >= CAPTURES_CHECK_BYTES;
    if (isStored && isDue) void this.#enforceLimits(maxBytes);
    this.#scheduleRetention();
    return hasWritten;
  }

  /** Yields regularly, so that visitors do not wait however much there is to drop. */
  async #enforceLimits(maxBytes = CAPTURES_STORED_MAX_BYTES): Promise<void> {
    this.#uncheckedBytes = 0;
    const isTooMuch = () => this.#store.storedBytes > maxBytes;
    let dropped = 0;
    while (this.#dropOldest(isTooMuch() ? Infinity : this.#retainedSinceMs)) {
      if (++dropped % CAPTURES_DROP_BATCH === 0) await scheduler.wait(0);
    }
  }

  /** @returns whether there was a capture that began before `beforeMs`. */
  #dropOldest(beforeMs: number): boolean {
    const dropped = this.#store.dropOldest(beforeMs);
    const row = dropped?.longLived;
    const open = row && this.#open.findLongLived(row.record.id, () => row);
    if (open) open.log = { ...open.log, ...skipDroppedPages(open.log) };
    return dropped !== null;
  }

  #scheduleRetention(): void {
    if (this.#isRetentionScheduled || this.#isRetired) return;
    const oldestMs = this.#store.oldestMs;
    if (oldestMs === undefined) return;
    this.#isRetentionScheduled = true;
    const endsAtMs = oldestMs + this.#settings.retentionMs;
    this.#deps.alarm.scheduleBy(
      Math.max(endsAtMs, Date.now() + RETENTION_CHECK_MIN_MS),
      "unconfirmed",
    );
  }
}
