/**
 * Pages of short captures, many in one stored value. Each capture is serialized when it ends: until it is written
 * the object then holds two strings instead of the many that make up a request and its response.
 */
import type {
  CaptureRecord,
  HeadLines,
  CapturedBodies,
  LongLivedRow,
  StoredBody,
  StoredDetail,
} from "./record.ts";
import { concatBytes } from "../../../shared/bytes.ts";
import { countChars } from "../../../shared/raw-headers.ts";

/** Bodies up to this size are stored with their headers, larger ones separately. */
const CAPTURE_INLINE_BODY_MAX_BYTES = 16 * 1024;

/** A capture that has ended, serialized. */
export interface FinalizedCapture {
  id: string;
  /** A `CaptureRecord` in JSON. */
  record: string;
  /** `HeadLines` in JSON. */
  lines: string;
  bodies: CapturedBodies;
  /** The memory reserved for its bodies and for its heads, to be released when it is written. */
  bodyBytes: number;
  headBytes: number;
}

/** The records of a page, oldest first. */
export interface Page {
  /** In JSON. */
  records: string;
  /** Keys of bodies that are stored separately. */
  bodies: string[];
  /** Absent when they are stored under a key of their own: large ones, and those that earlier versions wrote. */
  details?: PageDetails;
}

/** The headers and bodies of the same captures, in the same order. */
export interface PageDetails {
  /** In JSON. */
  lines: string;
  /** For each capture its request's and its response's body. */
  bodies: { length: number; isCut: boolean }[];
  /** Small bodies, concatenated. */
  bytes: Uint8Array;
}

const SIDES = ["request", "response"] as const;
/** The length of a body that is stored separately. */
const SEPARATE = -1;

export function isStoredSeparately(bytes: Uint8Array): boolean {
  return bytes.byteLength > CAPTURE_INLINE_BODY_MAX_BYTES;
}

/** About how many bytes it takes in its page. */
export function estimateSize({ record, lines, bodies }: FinalizedCapture): number {
  const inline = SIDES.map((side) => bodies[side].bytes).filter(
    (bytes) => !isStoredSeparately(bytes),
  );
  return inline.reduce((sum, bytes) => sum + bytes.byteLength, record.length + lines.length);
}

/** What a row takes besides its texts and bodies. */
const ROW_OVERHEAD_BYTES = 2_000;

/** About how many bytes a row takes, without bodies that are stored separately. */
export function estimateRowSize({ record, lines, bodies }: LongLivedRow): number {
  const { path, query } = record;
  const inline = SIDES.reduce((sum, side) => sum + (bodies[side].bytes?.byteLength ?? 0), 0);
  const chars =
    countChars([path, query ?? ""]) + countChars(lines.request) + countChars(lines.response);
  return ROW_OVERHEAD_BYTES + inline + chars;
}

/** @param captures oldest first. @param bodies keys of bodies that are stored separately. */
export function packPage(
  captures: FinalizedCapture[],
  bodies: string[],
): { page: Page; details: PageDetails } {
  const sides = captures.flatMap((capture) => SIDES.map((side) => capture.bodies[side]));
  const packed = sides.map(({ bytes, isCut }) => {
    return { length: isStoredSeparately(bytes) ? SEPARATE : bytes.byteLength, isCut };
  });
  const inline = sides.map((side) => side.bytes).filter((bytes) => !isStoredSeparately(bytes));
  const page = { records: toJsonArray(captures.map(({ record }) => record)), bodies };
  const lines = toJsonArray(captures.map((capture) => capture.lines));
  return { page, details: { lines, bodies: packed, bytes: concatBytes(inline) } };
}

/** About how many bytes they take. */
export function getDetailsSize({ lines, bytes }: PageDetails): number {
  return lines.length + bytes.byteLength;
}

/** About how many bytes a stored page takes, with its details where it contains them. */
export function getPageSize({ records, details }: Page): number {
  return records.length + (details ? getDetailsSize(details) : 0);
}

export function parseRecords({ records }: Page): CaptureRecord[] {
  return JSON.parse(records) as CaptureRecord[];
}

export interface PagedCapture {
  record: CaptureRecord;
  detail: StoredDetail;
}

/** A page whose texts are parsed once, however many of its captures are read. */
export class ParsedPage {
  readonly #records: CaptureRecord[];
  readonly #lines: HeadLines[];
  readonly #details: PageDetails;

  constructor(page: Page, details: PageDetails) {
    this.#records = parseRecords(page);
    this.#lines = JSON.parse(details.lines) as HeadLines[];
    this.#details = details;
  }

  find(id: string): PagedCapture | undefined {
    const index = this.#records.findIndex((record) => record.id === id);
    if (index < 0) return undefined;
    const lines = this.#lines[index]!;
    return { record: this.#records[index]!, detail: { lines, bodies: this.#readBodies(index) } };
  }

  #readBodies(index: number): StoredDetail["bodies"] {
    const { bodies, bytes } = this.#details;
    let at = 0;
    for (const { length } of bodies.slice(0, 2 * index)) at += Math.max(0, length);
    const take = ({ length, isCut }: PageDetails["bodies"][number]): StoredBody => {
      if (length === SEPARATE) return { bytes: null, isCut };
      const body = bytes.slice(at, at + length);
      at += length;
      return { bytes: body, isCut };
    };
    const request = take(bodies[2 * index]!);
    const response = take(bodies[2 * index + 1]!);
    return { request, response };
  }
}

function toJsonArray(items: string[]): string {
  return `[${items.join(",")}]`;
}
