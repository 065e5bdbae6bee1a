/**
 * Captures that were soon over, many in one value. Each is made to text when it is over: until it is written
 * the object then holds two strings of it instead of the many that a request and its answer are made of.
 */
import type { CaptureRecord, HeadLines, KeptBodies, StoredBody, StoredDetail } from "./record.ts";

/** Bodies up to this are written beside their headers, larger ones by themselves. */
const CAPTURE_INLINE_BODY_MAX_BYTES = 16 * 1024;

/** One that is over. */
export interface Sealed {
  id: string;
  /** A `CaptureRecord` in JSON. */
  record: string;
  /** `HeadLines` in JSON. */
  lines: string;
  bodies: KeptBodies;
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
const APART = -1;

export function isApart(bytes: Uint8Array): boolean {
  return bytes.byteLength > CAPTURE_INLINE_BODY_MAX_BYTES;
}

/** About what it takes in its page. */
export function sizeOf({ record, lines, bodies }: Sealed): number {
  const inline = SIDES.map((side) => bodies[side].bytes).filter((bytes) => !isApart(bytes));
  return inline.reduce((sum, bytes) => sum + bytes.byteLength, record.length + lines.length);
}

/** @param sealed oldest first. @param bodies keys of those that are stored by themselves. */
export function pack(sealed: Sealed[], bodies: string[]): { page: Page; details: PageDetails } {
  const sides = sealed.flatMap((one) => SIDES.map((side) => one.bodies[side]));
  const packed = sides.map(({ bytes, isCut }) => {
    return { length: isApart(bytes) ? APART : bytes.byteLength, isCut };
  });
  const bytes = new Uint8Array(packed.reduce((sum, { length }) => sum + Math.max(0, length), 0));
  let at = 0;
  for (const side of sides) {
    if (isApart(side.bytes)) continue;
    bytes.set(side.bytes, at);
    at += side.bytes.byteLength;
  }
  const page = { records: jsonArray(sealed.map(({ record }) => record)), bodies };
  const lines = jsonArray(sealed.map((one) => one.lines));
  return { page, details: { lines, bodies: packed, bytes } };
}

export function recordsOf({ records }: Page): CaptureRecord[] {
  return JSON.parse(records) as CaptureRecord[];
}

/** @param index of its record in the page. */
export function detailOf({ lines, bodies, bytes }: PageDetails, index: number): StoredDetail {
  let at = 0;
  for (const { length } of bodies.slice(0, 2 * index)) at += Math.max(0, length);
  const take = ({ length, isCut }: PageDetails["bodies"][number]): StoredBody => {
    if (length === APART) return { bytes: null, isCut };
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

function jsonArray(items: string[]): string {
  return `[${items.join(",")}]`;
}
