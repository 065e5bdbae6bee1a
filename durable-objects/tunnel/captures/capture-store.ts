/**
 * Captures on disk, in the object's own storage, as few rows as can be: what was soon over is written a page
 * at a time, what lasts in a row of its own beside pages of its messages, large bodies by themselves.
 *
 *     page:<newest id>      records of the page       details:<newest id>   heads and small bodies
 *     long:<id>             one that lasted           log:<id>:<page>       its messages or events
 *     body:<id>:<side>      a large body
 *
 * Ids sort by time, and so do keys. No record of a page is older than its newest by more than
 * `CAPTURE_LONG_MS`, so that a look-up knows where to stop. Writes are unconfirmed: no visitor's answer waits
 * until what was captured of it is on disk.
 */
import { toCaptureIdPrefix, getCaptureTimeMs } from "../../../protocol/capture-id.ts";
import { CAPTURE_LONG_MS } from "../../limits.ts";
import { mergeNewestFirst } from "./merge.ts";
import {
  readDetail,
  isStoredSeparately,
  pack,
  parseRecords,
  estimateSize,
  type Page,
  type PageDetails,
  type FinalizedCapture,
} from "./page.ts";
import type {
  Capture,
  CaptureRecord,
  StreamEntry,
  HeadLines,
  CapturedBodies,
  CapturedBody,
  LongLivedRow,
  StoredBody,
  StoredDetail,
} from "./record.ts";
import type { Recording } from "./recording.ts";

/** Exchanges that are written together at most. */
const CAPTURE_PAGE_MAX_EXCHANGES = 256;
/** All of a page beside each other: the platform stores values of 2 MB, and a character can take two bytes. */
export const CAPTURE_PAGE_MAX_BYTES = 512 * 1024;
/** Messages or events that are kept together, and how many such pages an exchange keeps: the newest. */
export const FRAME_PAGE_MAX_FRAMES = 100;
const FRAME_PAGE_MAX_BYTES = 32 * 1024;
export const FRAME_PAGES_MAX = 100;
/** The platform stores or deletes no more keys in one call. */
const STORAGE_BATCH_MAX_KEYS = 128;

const PREFIX = "capture:";
const KEY = {
  page: `${PREFIX}page:`,
  details: `${PREFIX}details:`,
  long: `${PREFIX}long:`,
  log: `${PREFIX}log:`,
  body: `${PREFIX}body:`,
} as const;
const PAGES_READ_AT_ONCE = 4;
const ROWS_READ_AT_ONCE = 32;
/** Behind every id. */
const END = "~";

/** What is to be stored, until it is. */
interface Batch {
  entries: Map<string, unknown>;
  bytes: number;
}

type Storage = Pick<DurableObjectStorage, "kv" | "put" | "delete" | "sql">;

export class CaptureStore {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  // ── Writing ──

  /** @returns about how many bytes. */
  write(finished: FinalizedCapture[], lasting: Recording[]): number {
    const batch: Batch = { entries: new Map(), bytes: 0 };
    finished.sort((a, b) => (a.id < b.id ? -1 : 1));
    const newestMs = finished.length === 0 ? 0 : getCaptureTimeMs(finished.at(-1)!.id);
    let page: FinalizedCapture[] = [];
    let bytes = 0;
    for (const sealed of finished) {
      if (getCaptureTimeMs(sealed.id) < newestMs - CAPTURE_LONG_MS) {
        this.#writeRow(batch, toRow(sealed));
        continue;
      }
      const size = estimateSize(sealed);
      const isFull =
        page.length === CAPTURE_PAGE_MAX_EXCHANGES || bytes + size > CAPTURE_PAGE_MAX_BYTES;
      if (isFull && page.length > 0) {
        this.#writePage(batch, page);
        page = [];
        bytes = 0;
      }
      page.push(sealed);
      bytes += size;
    }
    if (page.length > 0) this.#writePage(batch, page);
    for (const recording of lasting) this.#writeLongLived(batch, recording);
    this.#put(batch.entries);
    return batch.bytes;
  }

  #writePage(batch: Batch, sealed: FinalizedCapture[]): void {
    const apart: string[] = [];
    for (const { id, bodies } of sealed) this.#writeBodies(batch, id, bodies, apart);
    const newest = sealed.at(-1)!.id;
    const { page, details } = pack(sealed, apart);
    batch.entries.set(KEY.page + newest, page);
    batch.entries.set(KEY.details + newest, details);
    batch.bytes += page.records.length + details.lines.length + details.bytes.length;
  }

  #writeLongLived(batch: Batch, recording: Recording): void {
    this.#writeEntries(batch, recording);
    const { record, lines, log } = recording;
    // Bodies of what is open are in memory.
    const bodies = recording.isOpen ? NO_BODIES : recording.bodies;
    this.#writeRow(batch, { record, lines, bodies, log: { ...log } });
  }

  #writeRow(batch: Batch, row: Omit<LongLivedRow, "bodies"> & { bodies: CapturedBodies }): void {
    const { id } = row.record;
    const bodies = this.#writeBodies(batch, id, row.bodies, []);
    batch.entries.set(KEY.long + id, { ...row, bodies });
    batch.bytes += ROW_BYTES;
  }

  /** @param apart is given the keys of those that are stored by themselves. */
  #writeBodies(
    batch: Batch,
    id: string,
    bodies: CapturedBodies,
    apart: string[],
  ): StoredDetail["bodies"] {
    const store = (side: "request" | "response"): StoredBody => {
      const { bytes, isCut } = bodies[side];
      if (!isStoredSeparately(bytes)) return { bytes, isCut };
      const key = toBodyKey(id, side);
      batch.entries.set(key, bytes);
      batch.bytes += bytes.byteLength;
      apart.push(key);
      return { bytes: null, isCut };
    };
    return { request: store("request"), response: store("response") };
  }

  /** Goes on in the page that was written last: in memory is only what is not written yet. */
  #writeEntries(batch: Batch, recording: Recording): void {
    const { id, log } = recording;
    const { happenings, happened } = recording.takeEntries();
    if (happened === 0) return;
    log.total += happened;
    let page = this.#storage.kv.get<StreamEntry[]>(toLogKey(id, log.lastPage)) ?? [];
    let bytes = page.reduce((sum, { data }) => sum + data.length, 0);
    for (const happening of happenings) {
      if (page.length >= FRAME_PAGE_MAX_FRAMES || bytes >= FRAME_PAGE_MAX_BYTES) {
        batch.entries.set(toLogKey(id, log.lastPage), page);
        log.lastPage += 1;
        page = [];
        bytes = 0;
      }
      page.push(happening);
      bytes += happening.data.length;
      batch.bytes += happening.data.length;
    }
    batch.entries.set(toLogKey(id, log.lastPage), page);
    const gone: string[] = [];
    while (log.lastPage - log.firstPage >= FRAME_PAGES_MAX) gone.push(toLogKey(id, log.firstPage++));
    for (const key of gone) batch.entries.delete(key);
    this.#delete(gone);
  }

  #put(entries: Map<string, unknown>): void {
    for (const some of inBatches([...entries])) {
      void this.#storage.put(Object.fromEntries(some), { allowUnconfirmed: true });
    }
  }

  // ── Reading ──

  /** Newest first, from those that came at `fromMs` or later. */
  *records(fromMs: number, before: string = END): Generator<CaptureRecord> {
    const start = toCaptureIdPrefix(fromMs);
    // A page whose newest is younger may hold older ones.
    const pagesEnd =
      before === END ? END : toCaptureIdPrefix(getCaptureTimeMs(before) + CAPTURE_LONG_MS + 1);
    const pages = this.#listNewestFirst<Page>(KEY.page + start, KEY.page + pagesEnd, PAGES_READ_AT_ONCE);
    const rows = this.#listNewestFirst<LongLivedRow>(KEY.long + start, KEY.long + before, ROWS_READ_AT_ONCE);
    for (const record of mergeNewestFirst(readPageRecords(pages), readRowRecords(rows))) {
      if (record.id < start) return;
      if (record.id < before) yield record;
    }
  }

  /** Some at a time: a list ends where another begins. */
  *#listNewestFirst<Value>(start: string, end: string, atOnce: number): Generator<Value> {
    for (;;) {
      const options = { start, end, reverse: true, limit: atOnce };
      const some = [...this.#storage.kv.list<Value>(options)];
      for (const [, value] of some) yield value;
      if (some.length < atOnce) return;
      end = some.at(-1)![0];
    }
  }

  find(id: string): Capture | undefined {
    const { kv } = this.#storage;
    const row = kv.get<LongLivedRow>(KEY.long + id);
    if (row) {
      const { record, lines, log } = row;
      return { record, lines, bodies: this.#readBodies(id, row), log, entries: this.#readEntries(row) };
    }
    const end = toCaptureIdPrefix(getCaptureTimeMs(id) + CAPTURE_LONG_MS + 1);
    for (const [key, page] of kv.list<Page>({ start: KEY.page + id, end: KEY.page + end })) {
      const records = parseRecords(page);
      const index = records.findIndex((one) => one.id === id);
      if (index < 0) continue;
      const record = records[index]!;
      const newest = key.slice(KEY.page.length);
      const details = kv.get<PageDetails>(KEY.details + newest);
      if (!details) return undefined;
      const detail = readDetail(details, index);
      const { lines } = detail;
      const log = { total: 0, firstPage: 0, lastPage: 0 };
      return { record, lines, bodies: this.#readBodies(id, detail), log, entries: [] };
    }
    return undefined;
  }

  /** One that lasts: what is needed to go on with it. */
  findLongLived(id: string): LongLivedRow | undefined {
    return this.#storage.kv.get<LongLivedRow>(KEY.long + id);
  }

  #readBodies(id: string, { bodies }: StoredDetail): Capture["bodies"] {
    const read = (side: "request" | "response"): CapturedBody => {
      const { bytes, isCut } = bodies[side];
      const kept = bytes ?? this.#storage.kv.get<Uint8Array>(toBodyKey(id, side));
      return kept ? { bytes: kept, isCut } : { bytes: new Uint8Array(), isCut: true };
    };
    return { request: read("request"), response: read("response") };
  }

  #readEntries({ record: { id }, log }: LongLivedRow): StreamEntry[] {
    const happenings: StreamEntry[] = [];
    for (let page = log.firstPage; page <= log.lastPage; page++) {
      happenings.push(...(this.#storage.kv.get<StreamEntry[]>(toLogKey(id, page)) ?? []));
    }
    return happenings;
  }

  // ── Dropping ──

  /** What the object's storage holds, this and all else. */
  get storedBytes(): number {
    return this.#storage.sql.databaseSize;
  }

  /** When the oldest came that is kept. */
  get oldestMs(): number | undefined {
    const id = this.#findOldest()?.id;
    return id === undefined ? undefined : getCaptureTimeMs(id);
  }

  /**
   * Drops the oldest, if it came before then: a page, or one that lasted.
   * @returns its id if it is one that lasted, which may be open still; null when nothing so old is left.
   */
  dropOldest(beforeMs: number): { lasted: string | null } | null {
    const oldest = this.#findOldest();
    if (!oldest || getCaptureTimeMs(oldest.id) >= beforeMs) return null;
    if ("page" in oldest) {
      const { id, page } = oldest;
      this.#delete([KEY.page + id, KEY.details + id, ...page.bodies]);
      return { lasted: null };
    }
    const { id, row } = oldest;
    const keys = [KEY.long + id, toBodyKey(id, "request"), toBodyKey(id, "response")];
    for (let page = row.log.firstPage; page <= row.log.lastPage; page++) {
      keys.push(toLogKey(id, page));
    }
    this.#delete(keys);
    return { lasted: id };
  }

  /** A page is as old as the youngest in it: nothing goes before its time. */
  #findOldest(): { id: string; page: Page } | { id: string; row: LongLivedRow } | undefined {
    const { kv } = this.#storage;
    const [page] = kv.list<Page>({ prefix: KEY.page, limit: 1 });
    const [row] = kv.list<LongLivedRow>({ prefix: KEY.long, limit: 1 });
    const pageId = page?.[0].slice(KEY.page.length);
    const rowId = row?.[0].slice(KEY.long.length);
    if (pageId !== undefined && (rowId === undefined || pageId < rowId)) {
      return { id: pageId, page: page![1] };
    }
    return rowId === undefined ? undefined : { id: rowId, row: row![1] };
  }

  #delete(keys: string[]): void {
    for (const some of inBatches(keys)) {
      void this.#storage.delete(some, { allowUnconfirmed: true });
    }
  }
}

/** About what a row takes on disk beside large bodies. */
const ROW_BYTES = 2_000;
const NO_BODY: CapturedBody = { bytes: new Uint8Array(), isCut: true };
const NO_BODIES: CapturedBodies = { request: NO_BODY, response: NO_BODY };

/** One that was written late, so that it is no longer among those of its time. */
function toRow({ record, lines, bodies }: FinalizedCapture) {
  return {
    record: JSON.parse(record) as CaptureRecord,
    lines: JSON.parse(lines) as HeadLines,
    bodies,
    log: { total: 0, firstPage: 0, lastPage: 0 },
  };
}

function* readPageRecords(pages: Iterable<Page>): Generator<CaptureRecord[]> {
  for (const page of pages) yield parseRecords(page);
}

function* readRowRecords(rows: Iterable<LongLivedRow>): Generator<CaptureRecord[]> {
  for (const { record } of rows) yield [record];
}

function toBodyKey(id: string, side: "request" | "response"): string {
  return `${KEY.body}${id}:${side}`;
}

function toLogKey(id: string, page: number): string {
  return `${KEY.log}${id}:${String(page).padStart(10, "0")}`;
}

/** The platform takes no more keys at once. */
function* inBatches<Item>(items: Item[]): Generator<Item[]> {
  for (let at = 0; at < items.length; at += STORAGE_BATCH_MAX_KEYS) {
    yield items.slice(at, at + STORAGE_BATCH_MAX_KEYS);
  }
}
