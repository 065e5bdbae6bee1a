/** Lists captures newest first from pages that overlap in time. Pages are read only as they are needed. */
import type { CaptureRecord } from "./record.ts";

export interface UnreadPage {
  /** The id of its newest record. */
  newestId: string;
  /** Oldest first. */
  read(): CaptureRecord[];
}

/** @param sources each lists its pages by their newest record, newest first. */
export function* mergeNewestFirst(
  ...sources: Iterable<UnreadPage, void>[]
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

/** Looks one page ahead in one source. */
class PageReader {
  readonly #pages: Iterator<UnreadPage, void>;
  #next: UnreadPage | void;

  constructor(source: Iterable<UnreadPage, void>) {
    this.#pages = source[Symbol.iterator]();
    this.#next = this.#pages.next().value;
  }

  /** The id of the newest record in the next page; "" when there is none. */
  get newestId(): string {
    return this.#next?.newestId ?? "";
  }

  take(): CaptureRecord[] {
    const records = this.#next?.read() ?? [];
    this.#next = this.#pages.next().value;
    return records;
  }
}
