/** Reads whole captures by their ids. Those that are read together are in few pages, so the last pages are remembered. */
import { getCaptureTimeMs, toCaptureIdPrefix } from "../../../../protocol/captures/id.ts";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { KEY, PAGE_SPAN_MS, readPageDetails, toBodyKey, toLogKey } from "../keys.ts";
import {
  ParsedPage,
  estimateRowSize,
  getDetailsSize,
  getPageSize,
  type Page,
  type PagedCapture,
} from "../page.ts";
import {
  countEntryBytes,
  toDetail,
  type Capture,
  type CapturedBody,
  type LongLivedRow,
  type StoredDetail,
  type StreamEntry,
} from "../record.ts";
import { ReadPace, type ReadQueue } from "./read-pace.ts";

/** Captures in one answer, unless one alone is larger: a call of an object can return 32 MiB. */
const DETAILS_MAX_BYTES = 512 * 1024;

/** Captures of one moment can be in the pages of this many writes. */
const PAGES_REMEMBERED = 4;

type Storage = Pick<SyncKvStorage, "get" | "list">;

export class CaptureLookup {
  readonly pace: ReadPace;
  readonly #kv: Storage;
  #lastPages: ParsedPage[] = [];

  constructor(kv: Storage, queue: ReadQueue) {
    this.pace = new ReadPace(queue);
    this.#kv = kv;
  }

  find(id: string): Capture | undefined {
    // First: looking for a key can take a millisecond, because SQLite reads the large values next to it.
    const remembered = this.#findRemembered(id);
    if (remembered) return this.#readPaged(id, remembered);
    const row = this.#kv.get<LongLivedRow>(KEY.long + id);
    if (row) {
      const { record, lines, log } = row;
      const bodies = this.#readBodies(id, row);
      return { record, lines, bodies, log, entries: this.#readEntries(row) };
    }
    const stored = this.#findStored(id);
    return stored && this.#readPaged(id, stored);
  }

  #readPaged(id: string, { record, detail }: PagedCapture): Capture {
    const log = { total: 0, firstPage: 0, lastPage: 0 };
    const bodies = this.#readBodies(id, detail);
    return { record, lines: detail.lines, bodies, log, entries: [] };
  }

  #findRemembered(id: string): PagedCapture | undefined {
    for (const page of this.#lastPages) {
      const found = page.find(id);
      if (found) return found;
    }
    return undefined;
  }

  #findStored(id: string): PagedCapture | undefined {
    const end = toCaptureIdPrefix(getCaptureTimeMs(id) + PAGE_SPAN_MS + 1);
    const range = { start: KEY.page + id, end: KEY.page + end };
    for (const [key, page] of this.#kv.list<Page>(range)) {
      this.pace.add(getPageSize(page));
      // Parsing all pages of these seconds could take long.
      if (!page.records.includes(id)) continue;
      const details = readPageDetails(this.#kv, key, page);
      if (!details) continue;
      this.pace.add(getDetailsSize(details));
      const parsed = new ParsedPage(page, details);
      this.#lastPages = [parsed, ...this.#lastPages].slice(0, PAGES_REMEMBERED);
      const found = parsed.find(id);
      if (found) return found;
    }
    return undefined;
  }

  #readBodies(id: string, { bodies }: StoredDetail): Capture["bodies"] {
    const read = (side: "request" | "response"): CapturedBody => {
      const { bytes, isCut } = bodies[side];
      const stored = bytes ?? this.#kv.get<Uint8Array>(toBodyKey(id, side));
      return stored ? { bytes: stored, isCut } : { bytes: new Uint8Array(), isCut: true };
    };
    return { request: read("request"), response: read("response") };
  }

  #readEntries({ record: { id }, log }: LongLivedRow): StreamEntry[] {
    const entries: StreamEntry[] = [];
    for (let page = log.firstPage; page <= log.lastPage; page++) {
      entries.push(...(this.#kv.get<StreamEntry[]>(toLogKey(id, page)) ?? []));
    }
    return entries;
  }
}

/** The first of these captures: those that fit into one answer, but at least one. null for those that are not stored. */
export async function readDetails(
  ids: string[],
  { pace }: Pick<CaptureLookup, "pace">,
  find: (id: string) => Capture | undefined,
  tunnelId: string,
): Promise<(CaptureDetail | null)[]> {
  const details: (CaptureDetail | null)[] = [];
  let bytes = 0;
  for (const id of ids) {
    if (bytes >= DETAILS_MAX_BYTES) break;
    await pace.rest();
    const capture = find(id);
    details.push(capture ? toDetail(capture, tunnelId) : null);
    if (!capture) continue;
    const size = estimateCaptureSize(capture);
    bytes += size;
    pace.add(size);
  }
  return details;
}

/** About how many bytes it takes. */
function estimateCaptureSize(capture: Capture): number {
  return capture.entries.reduce(
    (sum, entry) => sum + countEntryBytes(entry),
    estimateRowSize(capture),
  );
}
