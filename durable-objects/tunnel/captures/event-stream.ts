/** Splits server-sent events as they flow (HTML, "Server-sent events"): nothing waits for anything here. */
import { FRAME_CAPTURE_MAX_BYTES } from "../../limits.ts";
import type { SseEvent } from "./record.ts";

/** What of an event is looked at: its fields may come in any order. */
const EVENT_MAX_BYTES = 4 * FRAME_CAPTURE_MAX_BYTES;
const LF = 10;
const CR = 13;

const decoder = new TextDecoder();

export class EventStreamParser {
  /** The event that has begun, as far as it is looked at, in lines that end with LF. */
  readonly #text = new Uint8Array(EVENT_MAX_BYTES);
  #length = 0;
  /** Bytes of the event, looked at or not, without the empty line that ends it. */
  #size = 0;
  #lineIsEmpty = true;
  #lastWasReturn = false;

  /** @returns the events that ended in these bytes. */
  push(bytes: Uint8Array, nowMs: number): SseEvent[] {
    const events: SseEvent[] = [];
    for (const unit of bytes) {
      const isRest = unit === LF && this.#lastWasReturn;
      this.#lastWasReturn = unit === CR;
      if (unit === LF || unit === CR) {
        // Two bytes can be the end of one line.
        if (isRest) {
          if (this.#size > 0) this.#size += 1;
          continue;
        }
        const event = this.#lineIsEmpty ? this.#takeEvent(nowMs) : null;
        if (event) events.push(event);
        if (!this.#lineIsEmpty) this.#append(LF);
        this.#lineIsEmpty = true;
      } else {
        this.#append(unit);
        this.#lineIsEmpty = false;
      }
    }
    return events;
  }

  #append(unit: number): void {
    this.#size += 1;
    if (this.#length < EVENT_MAX_BYTES) this.#text[this.#length++] = unit;
  }

  #takeEvent(atMs: number): SseEvent | null {
    const text = decoder.decode(this.#text.subarray(0, this.#length));
    const size = this.#size;
    this.#length = 0;
    this.#size = 0;
    return parseEvent(text, size, atMs);
  }
}

/** @returns null for what are only comments: they keep a connection open, and tell nothing. */
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
  return { atMs, size, event, id, data: data.join("\n").slice(0, FRAME_CAPTURE_MAX_BYTES) };
}
