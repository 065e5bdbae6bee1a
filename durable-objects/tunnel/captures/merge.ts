/** Lists captures newest first, of pages that overlap: read lazily, as many as are asked for. */
import type { CaptureRecord } from "./record.ts";

/**
 * @param sources of each the pages by their newest record, newest first; within a page the oldest is first.
 */
export function* mergeNewestFirst(
  ...sources: Iterable<CaptureRecord[]>[]
): Generator<CaptureRecord, void> {
  const ahead = sources.map((source) => new PageReader(source));
  /** Read, and not given yet: oldest first. */
  let waiting: CaptureRecord[] = [];
  for (;;) {
    const next = ahead.reduce((a, b) => (a.newest >= b.newest ? a : b));
    const last = waiting.at(-1);
    if (next.newest !== "" && (last === undefined || next.newest > last.id)) {
      waiting = [...waiting, ...next.take()].sort((a, b) => (a.id < b.id ? -1 : 1));
    } else if (last === undefined) return;
    else yield waiting.pop()!;
  }
}

/** One source, with its next page read ahead. */
class PageReader {
  readonly #pages: Iterator<CaptureRecord[]>;
  #next: CaptureRecord[];

  constructor(source: Iterable<CaptureRecord[]>) {
    this.#pages = source[Symbol.iterator]();
    this.#next = this.#read();
  }

  /** The id of the newest record to come; "" when there is none. */
  get newest(): string {
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
