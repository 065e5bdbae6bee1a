/**
 * All that a tunnel records: begins a recording for each visit, writes what is to be written a moment later
 * and together, keeps it within the plan's time and the tunnel's space, and tells it.
 */
import { CaptureIds, getCaptureTimeMs } from "../../../protocol/capture-id.ts";
import { CAPTURE_LONG_MS } from "../../limits.ts";
import type {
  CaptureEvent,
  CaptureFilter,
  CaptureSummary,
  CapturePolicy,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { Alarm } from "../alarm.ts";
import { CaptureStore } from "./capture-store.ts";
import type { CaptureFeed } from "./feed.ts";
import { CaptureMemory } from "./memory.ts";
import type { FinalizedCapture } from "./page.ts";
import {
  toEvent,
  matchesFilter,
  toSummary,
  type Capture,
  type CaptureRecord,
  type StreamLog,
} from "./record.ts";
import { Recording, type Recorder, type RecordedRequest } from "./recording.ts";
import { StoredCaptureSettings } from "./settings.ts";

/** Bodies of all exchanges of a tunnel that are not written yet. Beyond it they are cut. */
export const CAPTURE_MEMORY_MAX_BYTES = 16 * 1024 * 1024;
/** What a tunnel keeps on disk, everything included; the oldest goes first. */
export const CAPTURES_STORED_MAX_BYTES = 64 * 1024 * 1024;
/** How much may be written before the bound is looked at again. */
const CAPTURES_CHECK_BYTES = 1024 * 1024;
/** How many a list looks at before whatever else is due has its turn: some 10 ms. */
const CAPTURES_LIST_BATCH = 2_000;
/** How many pages are dropped before whatever else is due has its turn. */
const CAPTURES_DROP_BATCH = 200;
/** How long something recorded may be in memory only. A crash forgets no more than this. */
const CAPTURE_WRITE_DELAY_MS = 100;
/** Where retention is asked after, at least and while anything is kept. */
const RETENTION_CHECK_MIN_MS = 60_000;

const CLEARED_UNTIL_KEY = "captures-cleared-until";

export interface CapturesDeps {
  tunnelId(): string | undefined;
  alarm: Alarm;
  feed: CaptureFeed;
  /** It is over: nothing is kept of it. */
  isRetired: boolean;
}

export class Captures implements Recorder {
  readonly memory = new CaptureMemory(CAPTURE_MEMORY_MAX_BYTES);
  readonly #store: CaptureStore;
  readonly #settings: StoredCaptureSettings;
  readonly #kv: SyncKvStorage;
  readonly #tunnel: CapturesDeps;
  #isRetired: boolean;
  #clearedUntilMs: number;
  #ids: CaptureIds | undefined;
  /** Open, oldest first: those that may soon be over, and those that last. */
  readonly #recent = new Map<string, Recording>();
  readonly #longLived = new Map<string, Recording>();
  /** To be written. */
  #finalized: FinalizedCapture[] = [];
  #endedLongLived: Recording[] = [];
  readonly #changed = new Set<Recording>();
  #isWriteScheduled = false;
  #uncheckedBytes = 0;
  #isRetentionScheduled = false;

  constructor(storage: DurableObjectStorage, tunnel: CapturesDeps) {
    this.#store = new CaptureStore(storage);
    this.#settings = new StoredCaptureSettings(storage.kv);
    this.#kv = storage.kv;
    this.#tunnel = tunnel;
    this.#isRetired = tunnel.isRetired;
    this.#clearedUntilMs = storage.kv.get<number>(CLEARED_UNTIL_KEY) ?? 0;
  }

  // ── Told by workers ──

  publish(capturing: CapturePolicy): void {
    this.#settings.publish(capturing);
    this.#isRetentionScheduled = false;
    this.#scheduleRetention();
  }

  setRetention(version: number, retentionDays: number): void {
    this.#settings.setRetention(version, retentionDays);
  }

  get allowsReplay(): boolean {
    return this.#settings.allowReplay;
  }

  async list(filter: CaptureFilter): Promise<CaptureSummary[]> {
    const tunnelId = this.#tunnel.tunnelId();
    if (tunnelId === undefined || this.#isRetired) return [];
    this.#write(true);
    const summaries: CaptureSummary[] = [];
    const fromMs = Math.max(this.#retainedSinceMs, filter.sinceMs ?? 0);
    let looked = 0;
    for (const record of this.#store.records(fromMs, filter.after)) {
      if (summaries.length >= filter.limit) break;
      // A filter that finds little looks through everything, and visitors are not to wait for that.
      if (++looked % CAPTURES_LIST_BATCH === 0) await scheduler.wait(0);
      if (matchesFilter(record, filter)) summaries.push(toSummary(this.#withLiveState(record), tunnelId));
    }
    return summaries;
  }

  findEvent(id: string): CaptureEvent | null {
    const tunnelId = this.#tunnel.tunnelId();
    const capture = this.find(id);
    return capture && tunnelId !== undefined ? toEvent(capture, tunnelId) : null;
  }

  find(id: string): Capture | undefined {
    this.#write(true);
    const recording = this.#longLived.get(id);
    if (!recording && getCaptureTimeMs(id) < this.#retainedSinceMs) return undefined;
    const stored = this.#store.find(id);
    if (!recording) return stored && { ...stored, record: this.#withLiveState(stored.record) };
    const { record, lines, bodies, log } = recording;
    return { record, lines, bodies, log, entries: stored?.entries ?? [] };
  }

  /**
   * What came by then is listed no more from now on; what of it is open is found by its id until it is over.
   * A page that holds younger ones too stays on disk as long as they do.
   */
  async clear(untilMs: number): Promise<void> {
    this.#write(true);
    this.#clearedUntilMs = Math.max(this.#clearedUntilMs, Math.min(untilMs, Date.now()));
    this.#kv.put<number>(CLEARED_UNTIL_KEY, this.#clearedUntilMs);
    await this.#enforceLimits();
  }

  /** For good. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    this.#settings.remove();
    this.#kv.delete(CLEARED_UNTIL_KEY);
    await this.#enforceLimits();
  }

  /** Before the server stops. */
  flush(): void {
    this.#write(true);
  }

  // ── Told by visits ──

  /** @returns null when nothing is to be kept of it. */
  startRecording(visit: RecordedRequest): Recording | null {
    if (!this.#settings.isOn || this.#isRetired) return null;
    return this.#start(visit);
  }

  /** Of a replay there is always a new capture: it is what was asked for. */
  startReplayRecording(visit: RecordedRequest): Recording | null {
    return this.#isRetired ? null : this.#start(visit);
  }

  /** The WebSocket of a tunnel that slept. @returns null also when it is over, or recorded already. */
  resumeRecording(id: string): Recording | null {
    if (this.#isRetired || this.#longLived.has(id)) return null;
    this.#write(false);
    const row = this.#store.findLongLived(id);
    if (row?.record.state !== "open") return null;
    const recording = Recording.resume(this, this.#settings, row);
    this.#longLived.set(id, recording);
    return recording;
  }

  onLongLived(recording: Recording): void {
    this.#promote(recording);
    this.#notifyWatchers(recording);
  }

  onChanged(recording: Recording): void {
    this.#changed.add(recording);
    this.#scheduleWrite();
  }

  onEnded(recording: Recording): void {
    this.#recent.delete(recording.id);
    this.#longLived.delete(recording.id);
    this.#changed.delete(recording);
    if (recording.isLongLived) this.#endedLongLived.push(recording);
    else this.#finalized.push(recording.finalize());
    this.#scheduleWrite();
    this.#notifyWatchers(recording);
  }

  // ── Told by the alarm ──

  async onAlarm(): Promise<void> {
    this.#isRetentionScheduled = false;
    await this.#enforceLimits();
    this.#scheduleRetention();
  }

  // ── Inside ──

  #start(visit: RecordedRequest): Recording | null {
    const ids = (this.#ids ??= this.#createIds());
    if (!ids) return null;
    const atMs = Date.now();
    const id = ids.next(atMs);
    const recording = new Recording(this, this.#settings, id, atMs, visit);
    this.#recent.set(recording.id, recording);
    this.#scheduleWrite();
    return recording;
  }

  #createIds(): CaptureIds | undefined {
    const tunnelId = this.#tunnel.tunnelId();
    return tunnelId === undefined ? undefined : new CaptureIds(tunnelId);
  }

  get #retainedSinceMs(): number {
    if (this.#isRetired) return Infinity;
    return Math.max(Date.now() - this.#settings.retentionMs, this.#clearedUntilMs + 1);
  }

  /** What is open is further than it was written; what was when the object stopped is not any more. */
  #withLiveState(record: CaptureRecord): CaptureRecord {
    if (record.state !== "open") return record;
    return this.#longLived.get(record.id)?.record ?? { ...record, state: "aborted" };
  }

  #notifyWatchers(recording: Recording): void {
    const { feed } = this.#tunnel;
    if (!feed.isWatched) return;
    const tunnelId = this.#tunnel.tunnelId();
    if (tunnelId !== undefined) feed.add(toSummary(recording.record, tunnelId));
  }

  #promote(recording: Recording): void {
    if (!this.#recent.delete(recording.id)) return;
    recording.isLongLived = true;
    this.#longLived.set(recording.id, recording);
    this.onChanged(recording);
  }

  #scheduleWrite(): void {
    if (!this.#isWriteScheduled) void this.#writeAfterDelay();
  }

  async #writeAfterDelay(): Promise<void> {
    this.#isWriteScheduled = true;
    await scheduler.wait(CAPTURE_WRITE_DELAY_MS);
    this.#isWriteScheduled = false;
    this.#write(false);
  }

  /** @param all also what may soon be over. */
  #write(all: boolean): void {
    const longAgoMs = Date.now() - CAPTURE_LONG_MS;
    for (const recording of this.#recent.values()) {
      if (!all && recording.atMs > longAgoMs) break;
      this.#promote(recording);
      this.#notifyWatchers(recording);
    }
    const sealed = this.#finalized;
    const lasting = [...this.#changed, ...this.#endedLongLived];
    this.#finalized = [];
    this.#endedLongLived = [];
    this.#changed.clear();
    try {
      if (!this.#isRetired && (sealed.length > 0 || lasting.length > 0)) {
        this.#uncheckedBytes += this.#store.write(sealed, lasting);
      }
    } finally {
      for (const { heldBytes } of [...sealed, ...lasting.filter(({ isOpen }) => !isOpen)]) {
        this.memory.release(heldBytes);
      }
    }
    if (this.#recent.size > 0) this.#scheduleWrite();
    if (this.#uncheckedBytes >= CAPTURES_CHECK_BYTES) void this.#enforceLimits();
    this.#scheduleRetention();
  }

  /** However much there is to drop, visitors have their turn meanwhile. */
  async #enforceLimits(): Promise<void> {
    this.#uncheckedBytes = 0;
    const isTooMuch = () => this.#store.storedBytes > CAPTURES_STORED_MAX_BYTES;
    let dropped = 0;
    while (this.#dropOldest(isTooMuch() ? Infinity : this.#retainedSinceMs)) {
      if (++dropped % CAPTURES_DROP_BATCH === 0) await scheduler.wait(0);
    }
  }

  /** @returns whether there was one that came before. */
  #dropOldest(beforeMs: number): boolean {
    const dropped = this.#store.dropOldest(beforeMs);
    const open = dropped?.lasted != null ? this.#longLived.get(dropped.lasted) : undefined;
    if (open) open.log = { ...open.log, ...skipDroppedPages(open.log) };
    return dropped !== null;
  }

  #scheduleRetention(): void {
    if (this.#isRetentionScheduled || this.#isRetired) return;
    const oldestMs = this.#store.oldestMs;
    if (oldestMs === undefined) return;
    this.#isRetentionScheduled = true;
    const endsAtMs = oldestMs + this.#settings.retentionMs;
    this.#tunnel.alarm.scheduleBy(Math.max(endsAtMs, Date.now() + RETENTION_CHECK_MIN_MS), "unconfirmed");
  }
}

/** Where an open one goes on whose pages were dropped. */
function skipDroppedPages({ lastPage }: StreamLog): Pick<StreamLog, "firstPage" | "lastPage"> {
  return { firstPage: lastPage + 1, lastPage: lastPage + 1 };
}
