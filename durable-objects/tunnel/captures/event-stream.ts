/** Parses server-sent events as they stream through (HTML, "Server-sent events"), without delaying them. */
import { ENTRY_CAPTURE_MAX_BYTES } from "../../limits.ts";
import type { SseEvent } from "./record.ts";

/** The part of an event that is parsed: its fields may be in any order. */
const EVENT_MAX_BYTES = 4 * ENTRY_CAPTURE_MAX_BYTES;
const LF = 10;
const CR = 13;

const decoder = new TextDecoder();

export class EventStreamParser {
  /** The beginning of the current event, in lines that end with LF. */
  readonly #text = new Uint8Array(EVENT_MAX_BYTES);
  #length = 0;
  /** The size of the current event, parsed or not, without the empty line that ends it. */
  #size = 0;
  #isLineEmpty = true;
  #wasLastCr = false;

  /** @returns the events that ended in these bytes. */
  push(bytes: Uint8Array, nowMs: number): SseEvent[] {
    const events: SseEvent[] = [];
    for (const byte of bytes) {
      const isLfAfterCr = byte === LF && this.#wasLastCr;
      this.#wasLastCr = byte === CR;
      if (byte === LF || byte === CR) {
        // CR LF ends one line.
        if (isLfAfterCr) {
          if (this.#size > 0) this.#size += 1;
          continue;
        }
        const event = this.#isLineEmpty ? this.#takeEvent(nowMs) : null;
        if (event) events.push(event);
        if (!this.#isLineEmpty) this.#append(LF);
        this.#isLineEmpty = true;
      } else {
        this.#append(byte);
        this.#isLineEmpty = false;
      }
    }
    return events;
  }

  #append(byte: number): void {
    this.#size += 1;
    if (this.#length < EVENT_MAX_BYTES) this.#text[this.#length++] = byte;
  }

  #takeEvent(atMs: number): SseEvent | null {
    const text = decoder.decode(this.#text.subarray(0, this.#length));
    const size = this.#size;
    this.#length = 0;
    this.#size = 0;
    return parseEvent(text, size, atMs);
  }
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
