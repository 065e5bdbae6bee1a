/**
 * Captures that were soon over, many in one value. Each is made to text when it is over: until it is written
 * the object then holds two strings of it instead of the many that a request and its answer are made of.
 */
import type { CaptureRecord, HeadLines, CapturedBodies, StoredBody, StoredDetail } from "./record.ts";

/** Bodies up to this are written beside their headers, larger ones by themselves. */
const CAPTURE_INLINE_BODY_MAX_BYTES = 16 * 1024;

/** One that is over. */
export interface FinalizedCapture {
  id: string;
  /** A `CaptureRecord` in JSON. */
  record: string;
  /** `HeadLines` in JSON. */
  lines: string;
  bodies: CapturedBodies;
  /** What its bodies took of the memory, to be given back when it is written. */
  heldBytes: number;
}

/** Its records, oldest first. */
export interface Page {
  /** In JSON. */
  records: string;
  /** Keys of bodies that are stored by themselves. */
  bodies: string[];
}

/** The rest of the same captures, in the same order. */
export interface PageDetails {
  /** In JSON. */
  lines: string;
  /** Of each the length of the request's and of the answer's body, and whether bytes of them are missing. */
  bodies: { length: number; isCut: boolean }[];
  /** Small bodies, one behind the other. */
  bytes: Uint8Array;
}

const SIDES = ["request", "response"] as const;
/** A body that is stored by itself. */
const SEPARATE = -1;

export function isStoredSeparately(bytes: Uint8Array): boolean {
  return bytes.byteLength > CAPTURE_INLINE_BODY_MAX_BYTES;
}

/** About what it takes in its page. */
export function estimateSize({ record, lines, bodies }: FinalizedCapture): number {
  const inline = SIDES.map((side) => bodies[side].bytes).filter((bytes) => !isStoredSeparately(bytes));
  return inline.reduce((sum, bytes) => sum + bytes.byteLength, record.length + lines.length);
}

/** @param sealed oldest first. @param bodies keys of those that are stored by themselves. */
export function pack(sealed: FinalizedCapture[], bodies: string[]): { page: Page; details: PageDetails } {
  const sides = sealed.flatMap((one) => SIDES.map((side) => one.bodies[side]));
  const packed = sides.map(({ bytes, isCut }) => {
    return { length: isStoredSeparately(bytes) ? SEPARATE : bytes.byteLength, isCut };
  });
  const bytes = new Uint8Array(packed.reduce((sum, { length }) => sum + Math.max(0, length), 0));
  let at = 0;
  for (const side of sides) {
    if (isStoredSeparately(side.bytes)) continue;
    bytes.set(side.bytes, at);
    at += side.bytes.byteLength;
  }
  const page = { records: toJsonArray(sealed.map(({ record }) => record)), bodies };
  const lines = toJsonArray(sealed.map((one) => one.lines));
  return { page, details: { lines, bodies: packed, bytes } };
}

export function parseRecords({ records }: Page): CaptureRecord[] {
  return JSON.parse(records) as CaptureRecord[];
}

/** @param index of its record in the page. */
export function readDetail({ lines, bodies, bytes }: PageDetails, index: number): StoredDetail {
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
  return {
    lines: (JSON.parse(lines) as HeadLines[])[index]!,
    bodies: { request, response },
  };
}

function toJsonArray(items: string[]): string {
  return `[${items.join(",")}]`;
}
