/** Lists captures newest first from pages that overlap in time. Pages are read only as they are needed. */
import type { CaptureRecord } from "./record.ts";

/**
 * @param sources each lists its pages by their newest record, newest first; within a page the oldest is first.
 */
export function* mergeNewestFirst(
  ...sources: Iterable<CaptureRecord[]>[]
): Generator<CaptureRecord, void> {
  const readers = sources.map((source) => new PageReader(source));
  /** Records that were read and not yielded yet, oldest first. */
  let pending: CaptureRecord[] = [];
  for (;;) {
    const next = readers.reduce((a, b) => (a.newestId >= b.newestId ? a : b));
    const newestPending = pending.at(-1);
    if (next.newestId !== "" && (newestPending === undefined || next.newestId > newestPending.id)) {
      pending = [...pending, ...next.take()].sort((a, b) => (a.id < b.id ? -1 : 1));
    } else if (newestPending === undefined) return;
    else yield pending.pop()!;
  }
}

/** Reads one source one page ahead. */
class PageReader {
  readonly #pages: Iterator<CaptureRecord[]>;
  #next: CaptureRecord[];

  constructor(source: Iterable<CaptureRecord[]>) {
    this.#pages = source[Symbol.iterator]();
    this.#next = this.#read();
  }

  /** The id of the newest record in the next page; "" when there is none. */
  get newestId(): string {
    return this.#next.at(-1)?.id ?? "";
  }

  take(): CaptureRecord[] {
    const page = this.#next;
    this.#next = this.#read();
    return page;
  }

  #read(): CaptureRecord[] {
    const next = this.#pages.next();
    return next.done ? [] : next.value;
  }
}
