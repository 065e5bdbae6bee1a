/**
 * Records one exchange: the code that carries it reports what passes. During the exchange this costs a few
 * references and copies of small bodies; everything else is done when the capture is written.
 */
import { STATUS_BY_CODE, type ErrorCode } from "../../../protocol/errors.ts";
import { joinTarget, splitTarget } from "../../../protocol/request-target.ts";
import { ENTRY_CAPTURE_MAX_BYTES } from "../../limits.ts";
import type {
  CaptureKind,
  CaptureState,
  RefusedBy,
} from "../../../protocol/schemas/inspector/captures.ts";
import { BodyRecorder } from "./body.ts";
import { EventStreamParser, type EndedEvents } from "./event-stream.ts";
import type { CaptureMemory } from "./memory.ts";
import type { FinalizedCapture } from "./page.ts";
import {
  countEntryBytes,
  cutText,
  type CaptureRecord,
  type StreamEntry,
  type StreamLog,
  type HeadLines,
  type CapturedBodies,
  type CapturedBody,
  type LongLivedRow,
  type StreamMessage,
} from "./record.ts";
import { redactHeaders, redactTarget } from "./redaction.ts";
import { countChars, headerPairs, isEventStream } from "../../../shared/raw-headers.ts";

/** The owner's current settings: which parts of an exchange are recorded. */
interface CaptureOptions {
  bodies: boolean;
  redact: ReadonlySet<string>;
}

/** Stores recordings. A recording notifies it of each change, and reserves memory from it. */
export interface RecordingObserver {
  memory: CaptureMemory;
  /** An open recording has something to write. */
  onChanged(recording: Recording): void;
  /** The exchange will be open for long, so that it should be visible before it ends. */
  onLongLived(recording: Recording): void;
  onEnded(recording: Recording): void;
}

/** A request when its recording starts. */
export interface RecordedRequest {
  /** Method, target, then header names and values in turn, as they are sent to the agent. */
  parts: string[];
  /** How many characters the parts have together, at most. */
  chars: number;
  hasBody: boolean;
  isWebSocket: boolean;
  clientIp: string;
  replayOf: string | null;
}

/** How much is recorded of the target of a request whose headers are not recorded: it is written for every request. */
const CUT_TARGET_MAX_CHARS = 256;

export class Recording {
  readonly id: string;
  readonly atMs: number;
  /** Whether it is stored in a row of its own instead of a page of short captures. */
  isLongLived = false;
  /** Where its messages or events are stored. */
  log: StreamLog = { total: 0, firstPage: 0, lastPage: 0 };
  readonly #observer: RecordingObserver;
  readonly #options: CaptureOptions;
  readonly #request: Omit<RecordedRequest, "chars">;
  readonly #requestBody = new BodyRecorder();
  readonly #responseBody = new BodyRecorder();
  #responseLines: string[] = [];
  #headBytes = 0;
  /** The request's headers were not recorded, and of a long target only the beginning. */
  #isRequestHeadCut: boolean;
  #isResponseHeadCut = false;
  #kind: CaptureKind;
  #state: CaptureState = "open";
  #status: number | null = null;
  #latencyMs: number | null = null;
  #durationMs: number | null = null;
  #error: ErrorCode | null = null;
  #refusedBy: RefusedBy | null = null;
  #events: EventStreamParser | undefined;
  /** Messages and events that have not been written yet. */
  #entries: StreamEntry[] = [];
  #entryCount = 0;
  #entriesHeldBytes = 0;

  constructor(
    observer: RecordingObserver,
    options: CaptureOptions,
    { id, atMs }: { id: string; atMs: number },
    request: RecordedRequest,
  ) {
    this.id = id;
    this.atMs = atMs;
    this.#observer = observer;
    this.#options = options;
    const { parts, chars } = request;
    const hasRoom = this.#reserveHead(parts, chars);
    this.#request = hasRoom ? request : { ...request, parts: cutHead(parts) };
    this.#isRequestHeadCut = !hasRoom;
    this.#kind = request.isWebSocket ? "websocket" : "http";
    if (!request.hasBody) this.#requestBody.end();
  }

  /** Continues the recording of a WebSocket after its tunnel has hibernated. */
  static resume(
    observer: RecordingObserver,
    options: CaptureOptions,
    row: LongLivedRow,
  ): Recording {
    const { record, lines } = row;
    const { id, atMs, method, path, query, clientIp, replayOf } = record;
    const parts = [method, joinTarget(path, query), ...lines.request];
    const chars = countChars(parts);
    const request = { parts, chars, hasBody: false, isWebSocket: true, clientIp, replayOf };
    const recording = new Recording(observer, options, { id, atMs }, request);
    recording.isLongLived = true;
    recording.log = row.log;
    recording.#isRequestHeadCut ||= record.isRequestHeadCut === true;
    recording.#recordResponseHead(lines.response, countChars(lines.response));
    recording.#isResponseHeadCut ||= record.isResponseHeadCut === true;
    recording.#status = record.status;
    recording.#latencyMs = record.latencyMs;
    recording.#requestBody.size = record.requestSize;
    recording.#responseBody.size = record.responseSize;
    return recording;
  }

  // ── Called by the code that carries the exchange ──

  addRequestBytes(bytes: Uint8Array): void {
    if (this.#state === "open") this.#requestBody.add(bytes, this.#bodyMemory);
  }

  endRequest(): void {
    this.#requestBody.end();
  }

  /**
   * @param lines header names and values in turn, as the local server sent them.
   * @param chars how many characters they have together, at most.
   */
  startResponse(status: number, lines: string[], chars: number): void {
    if (this.#state !== "open") return;
    this.#status = status;
    this.#recordResponseHead(lines, chars);
    this.#latencyMs = Date.now() - this.atMs;
    const isEventStream = this.#kind === "http" && isUncompressedEventStream(lines);
    if (isEventStream) {
      this.#kind = "sse";
      this.#events = new EventStreamParser(this.#observer.memory);
    }
    if (isEventStream || status === 101) this.#observer.onLongLived(this);
  }

  addResponseBytes(bytes: Uint8Array): void {
    if (this.#state !== "open") return;
    this.#responseBody.add(bytes, this.#bodyMemory);
    if (this.#events) this.#recordEvents(this.#events.push(bytes, Date.now()));
  }

  /** A complete message of the WebSocket. */
  addMessage(from: "client" | "server", kind: "text" | "binary", bytes: Uint8Array): void {
    (from === "client" ? this.#requestBody : this.#responseBody).size += bytes.byteLength;
    this.#recordMessage(from, kind, bytes);
  }

  /**
   * One end of the WebSocket has sent a Close. Code 1006 means that the connection was lost. After the visitor's Close, the
   * local server may still send messages.
   */
  recordClose(from: "client" | "server", code: number, reason: string): void {
    const reasonBytes = new TextEncoder().encode(reason);
    const bytes = new Uint8Array(2 + reasonBytes.byteLength);
    new DataView(bytes.buffer).setUint16(0, code);
    bytes.set(reasonBytes, 2);
    this.#recordMessage(from, "close", bytes);
    if (code === 1006) this.#end(from === "client" ? "aborted" : "failed");
    else if (from === "server") this.complete();
  }

  complete(): void {
    this.#responseBody.end();
    this.#end("complete");
  }

  /** The visitor disconnected. */
  abort(): void {
    this.#end("aborted");
  }

  /** There is no response, or it broke off. */
  fail(code: ErrorCode): void {
    this.#endWithError("failed", code);
  }

  /** One of the tunnel's gates or limits refused the request. */
  refuse(code: ErrorCode, by: RefusedBy | null = null): void {
    this.#refusedBy = by;
    this.#endWithError("refused", code);
  }

  // ── Called by the observer ──

  get isOpen(): boolean {
    return this.#state === "open";
  }

  get record(): CaptureRecord {
    const { id, atMs } = this;
    const { parts, clientIp, replayOf } = this.#request;
    const [method = "", target = ""] = parts;
    return {
      id,
      atMs,
      method,
      ...splitTarget(redactTarget(target)),
      status: this.#status,
      latencyMs: this.#latencyMs,
      durationMs: this.#durationMs,
      requestSize: this.#requestBody.size,
      responseSize: this.#responseBody.size,
      clientIp,
      kind: this.#kind,
      state: this.#state,
      error: this.#error,
      replayOf,
      ...(this.#refusedBy && { refusedBy: this.#refusedBy }),
      ...(this.#isRequestHeadCut && { isRequestHeadCut: true }),
      ...(this.#isResponseHeadCut && { isResponseHeadCut: true }),
    };
  }

  get lines(): HeadLines {
    const { redact } = this.#options;
    return {
      request: redactHeaders(this.#request.parts.slice(2), redact),
      response: redactHeaders(this.#responseLines, redact),
    };
  }

  get bodies(): CapturedBodies {
    // The messages of a WebSocket are in its log.
    const isWebSocket = this.#kind === "websocket" && this.#status === 101;
    if (isWebSocket) return { request: NO_BODY, response: NO_BODY };
    return {
      request: this.#requestBody.toCapturedBody(),
      response: this.#responseBody.toCapturedBody(),
    };
  }

  /** The memory reserved for its bodies. */
  get bodyBytes(): number {
    return this.#requestBody.heldBytes + this.#responseBody.heldBytes;
  }

  /** The memory reserved for its heads. */
  get headBytes(): number {
    return this.#headBytes;
  }

  /** Called when the exchange has ended. */
  finalize(): FinalizedCapture {
    const { id, bodies, bodyBytes, headBytes } = this;
    const record = JSON.stringify(this.record);
    return { id, record, lines: JSON.stringify(this.lines), bodies, bodyBytes, headBytes };
  }

  /** @returns the entries since the last call, and how many there were: some may not have been recorded. */
  takeEntries(): { entries: StreamEntry[]; count: number } {
    const { memory } = this.#observer;
    const taken = { entries: this.#entries, count: this.#entryCount };
    memory.release(this.#entriesHeldBytes);
    this.#entries = [];
    this.#entryCount = 0;
    this.#entriesHeldBytes = 0;
    return taken;
  }

  // ── Inside ──

  #recordResponseHead(lines: string[], chars: number): void {
    if (this.#reserveHead(lines, chars)) this.#responseLines = lines;
    else this.#isResponseHeadCut = true;
  }

  /** @returns false when the observer's memory does not admit a head. Its headers are not recorded then. */
  #reserveHead(lines: string[], chars: number): boolean {
    const bytes = chars + lines.length * TEXT_OVERHEAD_BYTES;
    if (!this.#observer.memory.reserveHead(bytes)) return false;
    this.#headBytes += bytes;
    return true;
  }

  get #bodyMemory(): CaptureMemory | null {
    return this.#options.bodies ? this.#observer.memory : null;
  }

  #recordEvents({ parsed, unparsed }: EndedEvents): void {
    for (const event of parsed)
      this.#recordEntry(this.#options.bodies ? event : { ...event, data: "" });
    if (unparsed === 0) return;
    this.#entryCount += unparsed;
    this.#observer.onChanged(this);
  }

  #recordMessage(
    from: StreamMessage["from"],
    kind: StreamMessage["kind"],
    bytes: Uint8Array,
  ): void {
    const data = this.#options.bodies ? bytes.slice(0, ENTRY_CAPTURE_MAX_BYTES) : new Uint8Array();
    this.#recordEntry({ atMs: Date.now(), size: bytes.byteLength, from, kind, data });
  }

  #recordEntry(entry: StreamEntry): void {
    if (this.#state !== "open") return;
    this.#entryCount += 1;
    const bytes = ENTRY_OVERHEAD_BYTES + countEntryBytes(entry);
    const { memory } = this.#observer;
    const reserved = memory.admits("entry") ? memory.reserve(bytes) : 0;
    this.#entriesHeldBytes += reserved;
    if (reserved === bytes) this.#entries.push(entry);
    this.#observer.onChanged(this);
  }

  #endWithError(state: CaptureState, code: ErrorCode): void {
    if (this.#state !== "open") return;
    this.#error = code;
    if (this.#status === null) {
      this.#status = STATUS_BY_CODE[code];
      this.#latencyMs = Date.now() - this.atMs;
    }
    this.#end(state);
  }

  #end(state: CaptureState): void {
    if (this.#state !== "open") return;
    this.#state = state;
    this.#durationMs = Date.now() - this.atMs;
    this.#events?.release();
    this.#events = undefined;
    this.#observer.onEnded(this);
  }
}

function cutHead([method = "", target = ""]: string[]): string[] {
  return [method, cutText(target, CUT_TARGET_MAX_CHARS)];
}

const NO_BODY: CapturedBody = { bytes: new Uint8Array(), isCut: false };

/** The memory of a name or a value of a header besides its characters. */
const TEXT_OVERHEAD_BYTES = 32;

/** The memory of a message or an event besides its data. */
const ENTRY_OVERHEAD_BYTES = 200;

/** A compressed event stream can't be parsed here. */
function isUncompressedEventStream(lines: string[]): boolean {
  let hasEvents = false;
  for (const [name, value] of headerPairs(lines)) {
    const lower = name.toLowerCase();
    if (lower === "content-encoding" && value.toLowerCase() !== "identity") return false;
    if (lower === "content-type") hasEvents = isEventStream(value);
  }
  return hasEvents;
}
