/** Lists the records of stored captures, newest first, and the headers of their requests. */
import { getCaptureTimeMs, toCaptureIdPrefix } from "../../../../protocol/captures/id.ts";
import { KEY, PAGE_SPAN_MS, getPageId, readPageDetails } from "../keys.ts";
import { estimateRowSize, getDetailsSize, getPageSize, parseRecords, type Page } from "../page.ts";
import type { CaptureStore } from "../capture-store.ts";
import type { CaptureRecord, HeadLines, LongLivedRow } from "../record.ts";
import { mergeNewestFirst, type UnreadPage } from "./merge.ts";
import { ReadPace, ReadQueue } from "./read-pace.ts";

/** The newest page, and the one before, which may overlap it: most lists need no more. */
const FIRST_BATCH_PAGES = 2;
const FIRST_BATCH_ROWS = 32;
/** Later batches are larger, because each begins with a search. They end with the slice of a read. */
const BATCH_MAX_VALUES = 64;
/** Sorts after every id. */
const END = "~";

type Storage = Pick<SyncKvStorage, "get" | "list">;

/** Which kinds of captures are stored: a search for one that is not costs as much as for one that is. */
type StoredKinds = Pick<CaptureStore, "hasPages" | "hasLongLived">;

export class StoredRecords {
  /** For every read of this object. */
  readonly queue = new ReadQueue();
  readonly #kv: Storage;
  readonly #store: StoredKinds;

  constructor(kv: Storage, store: StoredKinds) {
    this.#kv = kv;
    this.#store = store;
  }

  /** The records of captures that began at `fromMs` or later, newest first. */
  async *list(fromMs: number, before: string = END): AsyncGenerator<CaptureRecord, void> {
    const start = toCaptureIdPrefix(fromMs);
    // A page whose newest record is later may contain earlier ones.
    const pagesEnd =
      before === END ? END : toCaptureIdPrefix(getCaptureTimeMs(before) + PAGE_SPAN_MS + 1);
    const pace = new ReadPace(this.queue);
    const sources: AsyncGenerator<UnreadPage, void>[] = [];
    if (this.#store.hasPages) sources.push(toUnreadPages(this.#listPages(start, pagesEnd, pace)));
    if (this.#store.hasLongLived) sources.push(toPagesOfOne(this.#listRows(start, before, pace)));
    for await (const record of mergeNewestFirst(sources)) {
      if (record.id < start) return;
      if (record.id < before) yield record;
    }
  }

  /** The headers of requests: of all that are at least as new as one of them. */
  async *listRequestLines(fromId: string): AsyncGenerator<[id: string, lines: string[]], void> {
    const pace = new ReadPace(this.queue);
    for await (const [key, page] of this.#listPages(fromId, END, pace)) {
      const details = readPageDetails(this.#kv, key, page);
      if (!details) continue;
      if (!page.details) pace.add(getDetailsSize(details));
      const lines = JSON.parse(details.lines) as HeadLines[];
      for (const [index, { id }] of parseRecords(page).entries()) yield [id, lines[index]!.request];
      await pace.rest();
    }
    if (!this.#store.hasLongLived) return;
    for await (const [, { record, lines }] of this.#listRows(fromId, END, pace)) {
      yield [record.id, lines.request];
    }
  }

  #listPages(start: string, end: string, pace: ReadPace): AsyncGenerator<[string, Page], void> {
    const firstBatch = { start: KEY.page + start, end: KEY.page + end, limit: FIRST_BATCH_PAGES };
    return this.#listNewestFirst<Page>(firstBatch, pace, getPageSize);
  }

  #listRows(
    start: string,
    end: string,
    pace: ReadPace,
  ): AsyncGenerator<[string, LongLivedRow], void> {
    const firstBatch = { start: KEY.long + start, end: KEY.long + end, limit: FIRST_BATCH_ROWS };
    return this.#listNewestFirst<LongLivedRow>(firstBatch, pace, estimateRowSize);
  }

  /** Lists keys with their values in batches: each batch ends where the next one begins. */
  async *#listNewestFirst<Value>(
    firstBatch: { start: string; end: string; limit: number },
    pace: ReadPace,
    getSize: (value: Value) => number,
  ): AsyncGenerator<[key: string, value: Value], void> {
    const { start } = firstBatch;
    for (let { end, limit } = firstBatch; ; limit = BATCH_MAX_VALUES) {
      await pace.rest();
      const batch: [key: string, value: Value][] = [];
      for (const [key, value] of this.#kv.list<Value>({ start, end, limit, reverse: true })) {
        batch.push([key, value]);
        pace.add(getSize(value));
        end = key;
        if (pace.isSliceComplete) break;
      }
      const isLast = batch.length < limit && !pace.isSliceComplete;
      yield* batch;
      if (isLast) return;
    }
  }
}

async function* toUnreadPages(
  pages: AsyncIterable<[string, Page]>,
): AsyncGenerator<UnreadPage, void> {
  for await (const [key, page] of pages) {
    yield { newestId: getPageId(key), read: () => parseRecords(page) };
  }
}

async function* toPagesOfOne(
  rows: AsyncIterable<[string, LongLivedRow]>,
): AsyncGenerator<UnreadPage, void> {
  for await (const [, { record }] of rows) yield { newestId: record.id, read: () => [record] };
}
