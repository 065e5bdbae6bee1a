/** Lists captures newest first from pages that overlap in time. Pages are read only as they are needed. */
import type { CaptureRecord } from "../record.ts";

export interface UnreadPage {
  /** The id of its newest record. */
  newestId: string;
  /** Oldest first. */
  read(): CaptureRecord[];
}

/** @param sources each lists its pages by their newest record, newest first. */
export async function* mergeNewestFirst(
  sources: AsyncIterable<UnreadPage, void>[],
): AsyncGenerator<CaptureRecord, void> {
  if (sources.length === 0) return;
  const readers = await Promise.all(sources.map((source) => PageReader.open(source)));
  /** Records that were read and not yielded yet, oldest first. */
  let pending: CaptureRecord[] = [];
  for (;;) {
    const next = readers.reduce((a, b) => (a.newestId >= b.newestId ? a : b));
    const newestPending = pending.at(-1);
    if (next.newestId !== "" && (newestPending === undefined || next.newestId > newestPending.id)) {
      pending = [...pending, ...(await next.take())].sort((a, b) => (a.id < b.id ? -1 : 1));
    } else if (newestPending === undefined) return;
    else yield pending.pop()!;
  }
}

/** Looks one page ahead in one source. */
class PageReader {
  readonly #pages: AsyncIterator<UnreadPage, void>;
  #next: UnreadPage | void;

  private constructor(pages: AsyncIterator<UnreadPage, void>, first: UnreadPage | void) {
    this.#pages = pages;
    this.#next = first;
  }

  static async open(source: AsyncIterable<UnreadPage, void>): Promise<PageReader> {
    const pages = source[Symbol.asyncIterator]();
    return new PageReader(pages, (await pages.next()).value);
  }

  /** The id of the newest record in the next page; "" when there is none. */
  get newestId(): string {
    return this.#next?.newestId ?? "";
  }

  async take(): Promise<CaptureRecord[]> {
    const records = this.#next?.read() ?? [];
    this.#next = (await this.#pages.next()).value;
    return records;
  }
}
