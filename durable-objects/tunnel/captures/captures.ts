/**
 * All that a tunnel records: begins a recording for each visit, writes what is to be written a moment later
 * and together, keeps it within the plan's time and the tunnel's space, and tells it.
 */
import { CaptureIds, captureTimeMs } from "../../../protocol/capture-id.ts";
import { CAPTURE_LONG_MS } from "../../limits.ts";
import type {
  CaptureEvent,
  CaptureFilter,
  CaptureSummary,
  Capturing,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { Alarm } from "../alarm.ts";
import { CaptureStore } from "./capture-store.ts";
import type { CaptureFeed } from "./feed.ts";
import { CaptureMemory } from "./memory.ts";
import type { Sealed } from "./page.ts";
import {
  eventOf,
  isWanted,
  summaryOf,
  type Capture,
  type CaptureRecord,
  type HappeningLog,
} from "./record.ts";
import { Recording, type Recorder, type Visit } from "./recording.ts";
import { CapturingSettings } from "./settings.ts";

/** Bodies of all exchanges of a tunnel that are not written yet. Beyond it they are cut. */
export const CAPTURE_MEMORY_MAX_BYTES = 16 * 1024 * 1024;
/** What a tunnel keeps on disk, everything included; the oldest goes first. */
export const CAPTURES_STORED_MAX_BYTES = 64 * 1024 * 1024;
/** How much may be written before the bound is looked at again. */
const CAPTURES_CHECK_BYTES = 1024 * 1024;
/** How many a list looks at before whatever else is due has its turn: some 10 ms. */
const CAPTURES_LOOKED_AT_ONCE = 2_000;
/** How many pages are dropped before whatever else is due has its turn. */
const CAPTURES_DROPPED_AT_ONCE = 200;
/** How long something recorded may be in memory only. A crash forgets no more than this. */
const CAPTURE_WRITE_DELAY_MS = 100;
/** Where retention is asked after, at least and while anything is kept. */
const RETENTION_CHECK_MIN_MS = 60_000;

const CLEARED_UNTIL_KEY = "captures-cleared-until";

export interface Captured {
  tunnelId(): string | undefined;
  alarm: Alarm;
  feed: CaptureFeed;
  /** It is over: nothing is kept of it. */
  isOver: boolean;
}

export class Captures implements Recorder {
  readonly memory = new CaptureMemory(CAPTURE_MEMORY_MAX_BYTES);
  readonly #store: CaptureStore;
  readonly #settings: CapturingSettings;
  readonly #kv: SyncKvStorage;
  readonly #tunnel: Captured;
  #isOver: boolean;
  #clearedUntilMs: number;
  #ids: CaptureIds | undefined;
  /** Open, oldest first: those that may soon be over, and those that last. */
  readonly #young = new Map<string, Recording>();
  readonly #lasting = new Map<string, Recording>();
  /** To be written. */
  #sealed: Sealed[] = [];
  #finished: Recording[] = [];
  readonly #changed = new Set<Recording>();
  #isWaiting = false;
  #uncheckedBytes = 0;
  #awaitsRetention = false;

  constructor(storage: DurableObjectStorage, tunnel: Captured) {
    this.#store = new CaptureStore(storage);
    this.#settings = new CapturingSettings(storage.kv);
    this.#kv = storage.kv;
    this.#tunnel = tunnel;
    this.#isOver = tunnel.isOver;
    this.#clearedUntilMs = storage.kv.get<number>(CLEARED_UNTIL_KEY) ?? 0;
  }

  // ── Told by workers ──

  publish(capturing: Capturing): void {
    this.#settings.publish(capturing);
    this.#awaitsRetention = false;
    this.#awaitRetention();
  }

  retain(version: number, retentionDays: number): void {
    this.#settings.retain(version, retentionDays);
  }

  get allowsReplay(): boolean {
    return this.#settings.allowReplay;
  }

  async list(filter: CaptureFilter): Promise<CaptureSummary[]> {
    const tunnelId = this.#tunnel.tunnelId();
    if (tunnelId === undefined || this.#isOver) return [];
    this.#write(true);
    const summaries: CaptureSummary[] = [];
    const fromMs = Math.max(this.#keptSinceMs, filter.sinceMs ?? 0);
    let looked = 0;
    for (const record of this.#store.records(fromMs, filter.after)) {
      if (summaries.length >= filter.limit) break;
      // A filter that finds little looks through everything, and visitors are not to wait for that.
      if (++looked % CAPTURES_LOOKED_AT_ONCE === 0) await scheduler.wait(0);
      if (isWanted(record, filter)) summaries.push(summaryOf(this.#asItIs(record), tunnelId));
    }
    return summaries;
  }

  event(id: string): CaptureEvent | null {
    const tunnelId = this.#tunnel.tunnelId();
    const capture = this.find(id);
    return capture && tunnelId !== undefined ? eventOf(capture, tunnelId) : null;
  }

  find(id: string): Capture | undefined {
    this.#write(true);
    const recording = this.#lasting.get(id);
    if (!recording && captureTimeMs(id) < this.#keptSinceMs) return undefined;
    const stored = this.#store.find(id);
    if (!recording) return stored && { ...stored, record: this.#asItIs(stored.record) };
    const { record, lines, bodies, log } = recording;
    return { record, lines, bodies, log, happenings: stored?.happenings ?? [] };
  }

  /**
   * What came by then is listed no more from now on; what of it is open is found by its id until it is over.
   * A page that holds younger ones too stays on disk as long as they do.
   */
  async clear(untilMs: number): Promise<void> {
    this.#write(true);
    this.#clearedUntilMs = Math.max(this.#clearedUntilMs, Math.min(untilMs, Date.now()));
    this.#kv.put<number>(CLEARED_UNTIL_KEY, this.#clearedUntilMs);
    await this.#keepWithinBounds();
  }

  /** For good. */
  async retire(): Promise<void> {
    this.#isOver = true;
    this.#settings.remove();
    this.#kv.delete(CLEARED_UNTIL_KEY);
    await this.#keepWithinBounds();
  }

  /** Before the server stops. */
  flush(): void {
    this.#write(true);
  }

  // ── Told by visits ──

  /** @returns null when nothing is to be kept of it. */
  begin(visit: Visit): Recording | null {
    if (!this.#settings.isOn || this.#isOver) return null;
    return this.#record(visit);
  }

  /** Of a replay there is always a new capture: it is what was asked for. */
  beginReplay(visit: Visit): Recording | null {
    return this.#isOver ? null : this.#record(visit);
  }

  /** The WebSocket of a tunnel that slept. @returns null also when it is over, or recorded already. */
  resume(id: string): Recording | null {
    if (this.#isOver || this.#lasting.has(id)) return null;
    this.#write(false);
    const row = this.#store.longRow(id);
    if (row?.record.state !== "open") return null;
    const recording = Recording.resumed(this, this.#settings, row);
    this.#lasting.set(id, recording);
    return recording;
  }

  lasts(recording: Recording): void {
    this.#promote(recording);
    this.#tell(recording);
  }

  changed(recording: Recording): void {
    this.#changed.add(recording);
    this.#writeSoon();
  }

  over(recording: Recording): void {
    this.#young.delete(recording.id);
    this.#lasting.delete(recording.id);
    this.#changed.delete(recording);
    if (recording.isLong) this.#finished.push(recording);
    else this.#sealed.push(recording.seal());
    this.#writeSoon();
    this.#tell(recording);
  }

  // ── Told by the alarm ──

  async due(): Promise<void> {
    this.#awaitsRetention = false;
    await this.#keepWithinBounds();
    this.#awaitRetention();
  }

  // ── Inside ──

  #record(visit: Visit): Recording | null {
    const ids = (this.#ids ??= this.#newIds());
    if (!ids) return null;
    const atMs = Date.now();
    const id = ids.next(atMs);
    const recording = new Recording(this, this.#settings, id, atMs, visit);
    this.#young.set(recording.id, recording);
    this.#writeSoon();
    return recording;
  }

  #newIds(): CaptureIds | undefined {
    const tunnelId = this.#tunnel.tunnelId();
    return tunnelId === undefined ? undefined : new CaptureIds(tunnelId);
  }

  get #keptSinceMs(): number {
    if (this.#isOver) return Infinity;
    return Math.max(Date.now() - this.#settings.retentionMs, this.#clearedUntilMs + 1);
  }

  /** What is open is further than it was written; what was when the object stopped is not any more. */
  #asItIs(record: CaptureRecord): CaptureRecord {
    if (record.state !== "open") return record;
    return this.#lasting.get(record.id)?.record ?? { ...record, state: "aborted" };
  }

  #tell(recording: Recording): void {
    const { feed } = this.#tunnel;
    if (!feed.isWatched) return;
    const tunnelId = this.#tunnel.tunnelId();
    if (tunnelId !== undefined) feed.captured(summaryOf(recording.record, tunnelId));
  }

  #promote(recording: Recording): void {
    if (!this.#young.delete(recording.id)) return;
    recording.isLong = true;
    this.#lasting.set(recording.id, recording);
    this.changed(recording);
  }

  #writeSoon(): void {
    if (!this.#isWaiting) void this.#writeLater();
  }

  async #writeLater(): Promise<void> {
    this.#isWaiting = true;
    await scheduler.wait(CAPTURE_WRITE_DELAY_MS);
    this.#isWaiting = false;
    this.#write(false);
  }

  /** @param all also what may soon be over. */
  #write(all: boolean): void {
    const longAgoMs = Date.now() - CAPTURE_LONG_MS;
    for (const recording of this.#young.values()) {
      if (!all && recording.atMs > longAgoMs) break;
      this.#promote(recording);
      this.#tell(recording);
    }
    const sealed = this.#sealed;
    const lasting = [...this.#changed, ...this.#finished];
    this.#sealed = [];
    this.#finished = [];
    this.#changed.clear();
    try {
      if (!this.#isOver && (sealed.length > 0 || lasting.length > 0)) {
        this.#uncheckedBytes += this.#store.write(sealed, lasting);
      }
    } finally {
      for (const { heldBytes } of [...sealed, ...lasting.filter(({ isOpen }) => !isOpen)]) {
        this.memory.giveBack(heldBytes);
      }
    }
    if (this.#young.size > 0) this.#writeSoon();
    if (this.#uncheckedBytes >= CAPTURES_CHECK_BYTES) void this.#keepWithinBounds();
    this.#awaitRetention();
  }

  /** However much there is to drop, visitors have their turn meanwhile. */
  async #keepWithinBounds(): Promise<void> {
    this.#uncheckedBytes = 0;
    const isTooMuch = () => this.#store.storedBytes > CAPTURES_STORED_MAX_BYTES;
    let dropped = 0;
    while (this.#dropOldest(isTooMuch() ? Infinity : this.#keptSinceMs)) {
      if (++dropped % CAPTURES_DROPPED_AT_ONCE === 0) await scheduler.wait(0);
    }
  }

  /** @returns whether there was one that came before. */
  #dropOldest(beforeMs: number): boolean {
    const dropped = this.#store.dropOldest(beforeMs);
    const open = dropped?.lasted != null ? this.#lasting.get(dropped.lasted) : undefined;
    if (open) open.log = { ...open.log, ...pageAfter(open.log) };
    return dropped !== null;
  }

  #awaitRetention(): void {
    if (this.#awaitsRetention || this.#isOver) return;
    const oldestMs = this.#store.oldestMs;
    if (oldestMs === undefined) return;
    this.#awaitsRetention = true;
    const endsAtMs = oldestMs + this.#settings.retentionMs;
    this.#tunnel.alarm.by(Math.max(endsAtMs, Date.now() + RETENTION_CHECK_MIN_MS), "unconfirmed");
  }
}

/** Where an open one goes on whose pages were dropped. */
function pageAfter({ lastPage }: HappeningLog): Pick<HappeningLog, "firstPage" | "lastPage"> {
  return { firstPage: lastPage + 1, lastPage: lastPage + 1 };
}
