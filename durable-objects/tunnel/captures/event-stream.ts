/** Parses server-sent events as they stream through (HTML, "Server-sent events"), without delaying them. */
import { ENTRY_CAPTURE_MAX_BYTES } from "../../limits.ts";
import type { CaptureMemory } from "./memory.ts";
import type { SseEvent } from "./record.ts";

/** The part of an event that is parsed: its fields may be in any order. */
const EVENT_MAX_BYTES = 4 * ENTRY_CAPTURE_MAX_BYTES;
const LF = 10;
const CR = 13;
const COLON = 58;

const decoder = new TextDecoder();

/** The events that ended in the bytes of one call. */
export interface EndedEvents {
  parsed: SseEvent[];
  /** How many more there were, which were not parsed. */
  unparsed: number;
}

/** Bounds the events of all streams of a tunnel. */
type EventMemory = Pick<CaptureMemory, "admitsEvent" | "reserveParser" | "releaseParser">;

export class EventStreamParser {
  readonly #memory: EventMemory;
  /** The beginning of the current event, in lines that end with LF. Undefined before the first event that is parsed. */
  #text: Uint8Array | undefined;
  #length = 0;
  /** The size of the current event, parsed or not, without the empty line that ends it. */
  #size = 0;
  #isLineEmpty = true;
  #wasLastCr = false;
  /** Whether the current event is parsed: decided at its beginning. */
  #isAdmitted = true;
  /** Whether the current event has a line that is no comment. */
  #hasFields = false;

  /** @param memory is asked for each event whether it is parsed, or only counted. */
  constructor(memory: EventMemory) {
    this.#memory = memory;
  }

  /** Returns its memory. Nothing may be pushed afterwards. */
  release(): void {
    if (this.#text) this.#memory.releaseParser(EVENT_MAX_BYTES);
    this.#text = undefined;
  }

  /** Lines are searched and copied as a whole: a stream may consist of very many bytes, or of very many events. */
  push(bytes: Uint8Array, nowMs: number): EndedEvents {
    const ended: EndedEvents = { parsed: [], unparsed: 0 };
    let at = this.#wasLastCr && bytes[0] === LF ? this.#skipLfAfterCr() : 0;
    if (bytes.length > 0) this.#wasLastCr = false;
    let [lf, cr] = [-1, -1];
    while (at < bytes.length) {
      let end = findShortLineEnd(bytes, at);
      if (end < 0) {
        if (lf < at) lf = indexOf(bytes, LF, at);
        if (cr < at) cr = indexOf(bytes, CR, at);
        end = Math.min(lf, cr);
      }
      if (end > at) this.#addToLine(bytes, at, end);
      if (end === bytes.length) break;
      this.#endLine(ended, nowMs);
      at = end + 1;
      if (bytes[end] === LF) continue;
      if (at === bytes.length) this.#wasLastCr = true;
      else if (bytes[at] === LF) at += this.#skipLfAfterCr();
    }
    return ended;
  }

  /** CR LF ends one line. @returns the length of the LF. */
  #skipLfAfterCr(): number {
    if (this.#size > 0) this.#size += 1;
    return 1;
  }

  #addToLine(bytes: Uint8Array, start: number, end: number): void {
    if (this.#size === 0) this.#isAdmitted = this.#hasText() && this.#memory.admitsEvent();
    if (this.#isLineEmpty && bytes[start] !== COLON) this.#hasFields = true;
    this.#isLineEmpty = false;
    this.#size += end - start;
    const length = Math.min(end - start, EVENT_MAX_BYTES - this.#length);
    if (!this.#isAdmitted || !this.#text || length === 0) return;
    this.#text.set(bytes.subarray(start, start + length), this.#length);
    this.#length += length;
  }

  #endLine(ended: EndedEvents, nowMs: number): void {
    if (this.#isLineEmpty) return this.#endEvent(ended, nowMs);
    this.#isLineEmpty = true;
    this.#size += 1;
    if (this.#isAdmitted && this.#text && this.#length < EVENT_MAX_BYTES)
      this.#text[this.#length++] = LF;
  }

  /** @returns false when there is no memory for it. */
  #hasText(): boolean {
    if (!this.#text && this.#memory.reserveParser(EVENT_MAX_BYTES))
      this.#text = new Uint8Array(EVENT_MAX_BYTES);
    return this.#text !== undefined;
  }

  #endEvent(ended: EndedEvents, nowMs: number): void {
    if (this.#hasFields) {
      const event = this.#isAdmitted ? this.#parse(nowMs) : null;
      if (event) ended.parsed.push(event);
      else if (!this.#isAdmitted) ended.unparsed += 1;
    }
    this.#length = 0;
    this.#size = 0;
    this.#hasFields = false;
  }

  #parse(nowMs: number): SseEvent | null {
    const text = decoder.decode(this.#text?.subarray(0, this.#length));
    return parseEvent(text, this.#size, nowMs);
  }
}

const SHORT_LINE_MAX_BYTES = 16;

/** Each call of `indexOf` costs as much as looking at about ten bytes here. @returns -1 for a longer line. */
function findShortLineEnd(bytes: Uint8Array, start: number): number {
  const end = Math.min(start + SHORT_LINE_MAX_BYTES, bytes.length);
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at];
    if (byte === LF || byte === CR) return at;
  }
  return -1;
}

/** @returns the length of the bytes when the byte is not among them. */
function indexOf(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}

/** @returns null when there are only comments: they keep a connection open and carry nothing. */
function parseEvent(text: string, size: number, atMs: number): SseEvent | null {
  let event = "message";
  let id: string | null = null;
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0 || line === "") continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    else if (field === "id") id = value;
    else if (field === "data") data.push(value);
  }
  if (data.length === 0 && id === null && event === "message") return null;
  return { atMs, size, event, id, data: data.join("\n").slice(0, ENTRY_CAPTURE_MAX_BYTES) };
}
