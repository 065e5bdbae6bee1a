/**
 * Captures in the object's own storage, in as few keys as possible: short captures are written in pages, each
 * long-lived one in a row of its own with pages of its messages, and large bodies separately.
 *
 *     page:<newest id>      records of the page       details:<newest id>   its headers and small bodies, if they are large
 *     long:<id>             a long-lived capture      log:<id>:<page>       its messages or events
 *     body:<id>:<side>      a large body
 *
 * Ids sort by time, and so do keys. No record of a page is more than `PAGE_SPAN_MS` older than its newest one,
 * so that a look-up knows where to stop. Writes are unconfirmed: no visitor's response waits for a disk.
 */
import { getCaptureTimeMs } from "../../../protocol/captures/id.ts";
import { KEY, PAGE_SPAN_MS, toBodyKey, toLogKey } from "./keys.ts";
import {
  isStoredSeparately,
  packPage,
  estimateRowSize,
  estimateSize,
  getDetailsSize,
  type Page,
  type FinalizedCapture,
} from "./page.ts";
import {
  countEntryBytes,
  type StreamEntry,
  type CapturedBodies,
  type CapturedBody,
  type LongLivedRow,
  type StoredBody,
  type StoredDetail,
} from "./record.ts";
import type { Recording } from "./recording.ts";

/** Exchanges in one page. */
export const CAPTURE_PAGE_MAX_EXCHANGES = 256;
/**
 * A page with its details, unless one capture alone is larger. To find a key, SQLite reads some of the other values completely
 * (`_cf_KV` is a table without row ids, whose search compares whole rows): large pages make each access slow.
 */
export const CAPTURE_PAGE_MAX_BYTES = 64 * 1024;
/** Details up to this size are stored in their page: a tunnel with little traffic writes one row for each request. */
const INLINE_DETAILS_MAX_BYTES = 16 * 1024;
/** Messages or events in one page, and how many pages of an exchange are stored: the newest ones. */
export const LOG_PAGE_MAX_ENTRIES = 100;
const LOG_PAGE_MAX_BYTES = 32 * 1024;
export const LOG_PAGES_MAX = 100;
/** About what a stored message or event takes besides its texts or bytes. */
const STORED_ENTRY_OVERHEAD_BYTES = 100;
/** The platform's limit for one call that stores or deletes keys. */
const STORAGE_BATCH_MAX_KEYS = 128;

/** Keys and values that are written together. */
interface Batch {
  values: Map<string, unknown>;
  bytes: number;
}

/** The ids of the oldest page and of the oldest long-lived capture; undefined when there is none. */
interface OldestIds {
  page: string | undefined;
  longLived: string | undefined;
}

type Storage = Pick<DurableObjectStorage, "kv" | "put" | "delete" | "sql">;

export class CaptureStore {
  readonly #storage: Storage;
  /** undefined: not looked up since something was dropped. */
  #oldestIds: OldestIds | undefined;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  // ── Writing ──

  /** @returns about how many bytes were written. */
  write(finalized: FinalizedCapture[], longLived: Recording[]): number {
    const batch: Batch = { values: new Map(), bytes: 0 };
    finalized.sort((a, b) => (a.id < b.id ? -1 : 1));
    let page: FinalizedCapture[] = [];
    let bytes = 0;
    for (const capture of finalized) {
      const size = estimateSize(capture);
      const oldest = page[0] ?? capture;
      const isComplete =
        page.length === CAPTURE_PAGE_MAX_EXCHANGES ||
        bytes + size > CAPTURE_PAGE_MAX_BYTES ||
        getCaptureTimeMs(capture.id) > getCaptureTimeMs(oldest.id) + PAGE_SPAN_MS;
      if (isComplete && page.length > 0) {
        this.#writePage(batch, page);
        page = [];
        bytes = 0;
      }
      page.push(capture);
      bytes += size;
    }
    if (page.length > 0) this.#writePage(batch, page);
    for (const recording of longLived) this.#writeLongLived(batch, recording);
    this.#put(batch.values);
    return batch.bytes;
  }

  #writePage(batch: Batch, captures: FinalizedCapture[]): void {
    const bodyKeys: string[] = [];
    for (const { id, bodies } of captures) this.#writeBodies(batch, id, bodies, bodyKeys);
    const newestId = captures.at(-1)!.id;
    const { page, details } = packPage(captures, bodyKeys);
    const detailsBytes = getDetailsSize(details);
    const hasOwnKey = detailsBytes > INLINE_DETAILS_MAX_BYTES;
    this.#onWritten("page", newestId);
    batch.values.set(KEY.page + newestId, hasOwnKey ? page : { ...page, details });
    if (hasOwnKey) batch.values.set(KEY.details + newestId, details);
    batch.bytes += page.records.length + detailsBytes;
  }

  #writeLongLived(batch: Batch, recording: Recording): void {
    this.#writeEntries(batch, recording);
    const { record, lines, log } = recording;
    // The bodies of an open exchange are in memory.
    const bodies = recording.isOpen ? NO_BODIES : recording.bodies;
    this.#writeRow(batch, { record, lines, bodies, log: { ...log } });
  }

  #writeRow(batch: Batch, row: Omit<LongLivedRow, "bodies"> & { bodies: CapturedBodies }): void {
    const { id } = row.record;
    const bodies = this.#writeBodies(batch, id, row.bodies, []);
    const stored: LongLivedRow = { ...row, bodies };
    this.#onWritten("longLived", id);
    batch.values.set(KEY.long + id, stored);
    batch.bytes += estimateRowSize(stored);
  }

  /** @param bodyKeys receives the keys of bodies that are stored separately. */
  #writeBodies(
    batch: Batch,
    id: string,
    bodies: CapturedBodies,
    bodyKeys: string[],
  ): StoredDetail["bodies"] {
    const store = (side: "request" | "response"): StoredBody => {
      const { bytes, isCut } = bodies[side];
      if (!isStoredSeparately(bytes)) return { bytes, isCut };
      const key = toBodyKey(id, side);
      batch.values.set(key, bytes);
      batch.bytes += bytes.byteLength;
      bodyKeys.push(key);
      return { bytes: null, isCut };
    };
    return { request: store("request"), response: store("response") };
  }

  /** Continues the page that was written last: only unwritten entries are in memory. */
  #writeEntries(batch: Batch, recording: Recording): void {
    const { id, log } = recording;
    const { entries, count } = recording.takeEntries();
    if (count === 0) return;
    log.total += count;
    let page = this.#storage.kv.get<StreamEntry[]>(toLogKey(id, log.lastPage)) ?? [];
    const pages = new Map([[toLogKey(id, log.lastPage), page]]);
    let bytes = countStoredBytes(page);
    for (const entry of entries) {
      if (page.length >= LOG_PAGE_MAX_ENTRIES || bytes >= LOG_PAGE_MAX_BYTES) {
        log.lastPage += 1;
        page = [];
        pages.set(toLogKey(id, log.lastPage), page);
        bytes = 0;
      }
      page.push(entry);
      bytes += countStoredBytes([entry]);
    }
    const droppedKeys: string[] = [];
    while (log.lastPage - log.firstPage >= LOG_PAGES_MAX) {
      droppedKeys.push(toLogKey(id, log.firstPage++));
    }
    for (const key of droppedKeys) pages.delete(key);
    this.#delete(droppedKeys);
    for (const [key, stored] of pages) {
      batch.values.set(key, stored);
      batch.bytes += countStoredBytes(stored);
    }
  }

  #put(values: Map<string, unknown>): void {
    for (const batch of inBatches([...values])) {
      void this.#storage.put(Object.fromEntries(batch), { allowUnconfirmed: true });
    }
  }

  // ── Reading ──

  /** The row of a long-lived capture, from which its recording is resumed. */
  findLongLived(id: string): LongLivedRow | undefined {
    return this.#storage.kv.get<LongLivedRow>(KEY.long + id);
  }

  // ── Dropping ──

  /** The size of the object's storage, including everything else in it. */
  get storedBytes(): number {
    return this.#storage.sql.databaseSize;
  }

  get hasPages(): boolean {
    return this.#findOldestIds().page !== undefined;
  }

  get hasLongLived(): boolean {
    return this.#findOldestIds().longLived !== undefined;
  }

  /** When the oldest stored capture began. */
  get oldestMs(): number | undefined {
    const { page, longLived } = this.#findOldestIds();
    const id = isOlder(page, longLived) ? page : longLived;
    return id === undefined ? undefined : getCaptureTimeMs(id);
  }

  /**
   * Drops the oldest page or long-lived capture if it began before `beforeMs`.
   * @returns the row of a long-lived capture, which may still be open; null when nothing was old enough.
   */
  dropOldest(beforeMs: number): { longLived?: LongLivedRow } | null {
    const { oldestMs } = this;
    if (oldestMs === undefined || oldestMs >= beforeMs) return null;
    const { page, longLived } = this.#findOldestIds();
    this.#oldestIds = undefined;
    if (!isOlder(page, longLived)) return { longLived: this.#dropLongLived(longLived!) };
    this.#dropPage(page!);
    return {};
  }

  #dropPage(id: string): void {
    const page = this.#storage.kv.get<Page>(KEY.page + id)!;
    const detailsKeys = page.details ? [] : [KEY.details + id];
    this.#delete([KEY.page + id, ...detailsKeys, ...page.bodies]);
  }

  #dropLongLived(id: string): LongLivedRow {
    const row = this.findLongLived(id)!;
    const { log } = row;
    const keys = [KEY.long + id, toBodyKey(id, "request"), toBodyKey(id, "response")];
    for (let page = log.firstPage; page <= log.lastPage; page++) keys.push(toLogKey(id, page));
    this.#delete(keys);
    return row;
  }

  /** A page is as old as its newest capture, so that none is dropped too early. */
  #findOldestIds(): OldestIds {
    this.#oldestIds ??= {
      page: this.#findFirstId(KEY.page),
      longLived: this.#findFirstId(KEY.long),
    };
    return this.#oldestIds;
  }

  #findFirstId(prefix: string): string | undefined {
    const [first] = this.#storage.kv.list({ prefix, limit: 1 });
    return first?.[0].slice(prefix.length);
  }

  #onWritten(kind: keyof OldestIds, id: string): void {
    if (this.#oldestIds && isOlder(id, this.#oldestIds[kind])) this.#oldestIds[kind] = id;
  }

  #delete(keys: string[]): void {
    for (const batch of inBatches(keys)) {
      void this.#storage.delete(batch, { allowUnconfirmed: true });
    }
  }
}

const NO_BODY: CapturedBody = { bytes: new Uint8Array(), isCut: true };
const NO_BODIES: CapturedBodies = { request: NO_BODY, response: NO_BODY };

/** Ids sort by time. Each is older than none. */
function isOlder(id: string | undefined, other: string | undefined): boolean {
  return id !== undefined && (other === undefined || id < other);
}

/** About how many bytes a page of messages or events takes. */
function countStoredBytes(page: StreamEntry[]): number {
  return page.reduce((sum, entry) => sum + STORED_ENTRY_OVERHEAD_BYTES + countEntryBytes(entry), 0);
}

function* inBatches<Item>(items: Item[]): Generator<Item[]> {
  for (let at = 0; at < items.length; at += STORAGE_BATCH_MAX_KEYS) {
    yield items.slice(at, at + STORAGE_BATCH_MAX_KEYS);
  }
}
