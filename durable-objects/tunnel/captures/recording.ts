/**
 * One visit while it is recorded: whoever carries it tells what passes. It costs the visitor a few references
 * and the copies of small bodies; all else is done when it is written.
 */
import { STATUS_BY_CODE, type ErrorCode } from "../../../protocol/errors.ts";
import { FRAME_CAPTURE_MAX_BYTES } from "../../limits.ts";
import type { CaptureKind, CaptureState } from "../../../protocol/schemas/inspector/captures.ts";
import { BodyRecorder } from "./body.ts";
import { EventStreamParser } from "./event-stream.ts";
import type { CaptureMemory } from "./memory.ts";
import type { FinalizedCapture } from "./page.ts";
import type {
  CaptureRecord,
  StreamEntry,
  StreamLog,
  HeadLines,
  CapturedBodies,
  CapturedBody,
  LongLivedRow,
  StreamMessage,
} from "./record.ts";
import { redactHeaders } from "./redaction.ts";

/** What is to be kept, by the owner's newest settings. */
export interface CaptureOptions {
  bodies: boolean;
  redact: ReadonlySet<string>;
}

/** Who writes it down. */
export interface Recorder {
  memory: CaptureMemory;
  /** There is something to write of one that is open. */
  onChanged(recording: Recording): void;
  /** It is one that will be open for long: somebody may want to see it before it is over. */
  onLongLived(recording: Recording): void;
  onEnded(recording: Recording): void;
}

/** As it begins. */
export interface RecordedRequest {
  /** Method, target, then header names and values in turn: as they go to the agent. */
  parts: string[];
  hasBody: boolean;
  isSocket: boolean;
  clientIp: string;
  replayOf: string | null;
}

export class Recording {
  readonly id: string;
  readonly atMs: number;
  /** It is kept apart from those that are soon over. */
  isLongLived = false;
  /** Where its messages or events are. */
  log: StreamLog = { total: 0, firstPage: 0, lastPage: 0 };
  readonly #recorder: Recorder;
  readonly #options: CaptureOptions;
  readonly #start: RecordedRequest;
  readonly #request = new BodyRecorder();
  readonly #response = new BodyRecorder();
  #responseLines: string[] = [];
  #kind: CaptureKind;
  #state: CaptureState = "open";
  #status: number | null = null;
  #latencyMs: number | null = null;
  #durationMs: number | null = null;
  #error: ErrorCode | null = null;
  #events: EventStreamParser | undefined;
  /** Messages and events that are not written yet. */
  #entries: StreamEntry[] = [];
  #entryCount = 0;
  #entriesHeldBytes = 0;

  constructor(recorder: Recorder, kept: CaptureOptions, id: string, atMs: number, visit: RecordedRequest) {
    this.id = id;
    this.atMs = atMs;
    this.#recorder = recorder;
    this.#options = kept;
    this.#start = visit;
    this.#kind = visit.isSocket ? "websocket" : "http";
    if (!visit.hasBody) this.#request.end();
  }

  /** A WebSocket's, whose tunnel slept meanwhile. */
  static resume(recorder: Recorder, kept: CaptureOptions, row: LongLivedRow): Recording {
    const { record, lines } = row;
    const { id, atMs, method, path, query, clientIp, replayOf } = record;
    const target = query === null ? path : `${path}?${query}`;
    const parts = [method, target, ...lines.request];
    const visit = { parts, hasBody: false, isSocket: true, clientIp, replayOf };
    const recording = new Recording(recorder, kept, id, atMs, visit);
    recording.isLongLived = true;
    recording.log = row.log;
    recording.#responseLines = lines.response;
    recording.#status = record.status;
    recording.#latencyMs = record.latencyMs;
    recording.#request.size = record.requestSize;
    recording.#response.size = record.responseSize;
    return recording;
  }

  // ── Told by whoever carries the visit ──

  addRequestBytes(bytes: Uint8Array): void {
    if (this.#state === "open") this.#request.add(bytes, this.#bodyMemory);
  }

  endRequest(): void {
    this.#request.end();
  }

  /** @param lines names and values in turn, as the local server sent them. */
  startResponse(status: number, lines: string[]): void {
    this.#status = status;
    this.#responseLines = lines;
    this.#latencyMs = Date.now() - this.atMs;
    const isEventStream = this.#kind === "http" && isUncompressedEventStream(lines);
    if (isEventStream) {
      this.#kind = "sse";
      this.#events = new EventStreamParser();
    }
    if (isEventStream || status === 101) this.#recorder.onLongLived(this);
  }

  addResponseBytes(bytes: Uint8Array): void {
    if (this.#state !== "open") return;
    this.#response.add(bytes, this.#bodyMemory);
    for (const event of this.#events?.push(bytes, Date.now()) ?? []) {
      this.#recordEntry(this.#options.bodies ? event : { ...event, data: "" });
    }
  }

  /** A message of the WebSocket, whole. */
  addMessage(from: "client" | "server", kind: "text" | "binary", bytes: Uint8Array): void {
    (from === "client" ? this.#request : this.#response).size += bytes.byteLength;
    this.#recordMessage(from, kind, bytes);
  }

  /** The WebSocket was closed. By 1006: it vanished. */
  closeSocket(from: "client" | "server", code: number, reason: string): void {
    const words = new TextEncoder().encode(reason);
    const bytes = new Uint8Array(2 + words.byteLength);
    new DataView(bytes.buffer).setUint16(0, code);
    bytes.set(words, 2);
    this.#recordMessage(from, "close", bytes);
    if (code !== 1006) this.complete();
    else this.#end(from === "client" ? "aborted" : "failed");
  }

  complete(): void {
    this.#response.end();
    this.#end("complete");
  }

  /** The visitor left. */
  abort(): void {
    this.#end("aborted");
  }

  /** There is no answer, or no more of one. */
  fail(code: ErrorCode): void {
    this.#endWithError("failed", code);
  }

  /** By what stands before the tunnel. */
  refuse(code: ErrorCode): void {
    this.#endWithError("refused", code);
  }

  // ── Told by whoever writes it down ──

  get isOpen(): boolean {
    return this.#state === "open";
  }

  get record(): CaptureRecord {
    const { id, atMs } = this;
    const { parts, clientIp, replayOf } = this.#start;
    const [method = "", target = ""] = parts;
    const mark = target.indexOf("?");
    return {
      id,
      atMs,
      method,
      path: mark < 0 ? target : target.slice(0, mark),
      query: mark < 0 ? null : target.slice(mark + 1),
      status: this.#status,
      latencyMs: this.#latencyMs,
      durationMs: this.#durationMs,
      requestSize: this.#request.size,
      responseSize: this.#response.size,
      clientIp,
      kind: this.#kind,
      state: this.#state,
      error: this.#error,
      replayOf,
    };
  }

  get lines(): HeadLines {
    const { redact } = this.#options;
    return {
      request: redactHeaders(this.#start.parts.slice(2), redact),
      response: redactHeaders(this.#responseLines, redact),
    };
  }

  get bodies(): CapturedBodies {
    // The messages of a WebSocket are in its log.
    const isSocket = this.#kind === "websocket" && this.#status === 101;
    if (isSocket) return { request: NO_BODY, response: NO_BODY };
    return { request: this.#request.toCapturedBody(), response: this.#response.toCapturedBody() };
  }

  /** What its bodies took of the memory. */
  get heldBytes(): number {
    return this.#request.heldBytes + this.#response.heldBytes;
  }

  /** When it is over. */
  finalize(): FinalizedCapture {
    const { id, bodies, heldBytes } = this;
    const record = JSON.stringify(this.record);
    return { id, record, lines: JSON.stringify(this.lines), bodies, heldBytes };
  }

  /** @returns what happened since this was asked last, and how many of it there were: some may be missing. */
  takeEntries(): { happenings: StreamEntry[]; happened: number } {
    const { memory } = this.#recorder;
    const taken = { happenings: this.#entries, happened: this.#entryCount };
    memory.release(this.#entriesHeldBytes);
    this.#entries = [];
    this.#entryCount = 0;
    this.#entriesHeldBytes = 0;
    return taken;
  }

  // ── Inside ──

  get #bodyMemory(): CaptureMemory | null {
    return this.#options.bodies ? this.#recorder.memory : null;
  }

  #recordMessage(from: StreamMessage["from"], kind: StreamMessage["kind"], bytes: Uint8Array): void {
    const data = this.#options.bodies ? bytes.slice(0, FRAME_CAPTURE_MAX_BYTES) : new Uint8Array();
    this.#recordEntry({ atMs: Date.now(), size: bytes.byteLength, from, kind, data });
  }

  #recordEntry(happening: StreamEntry): void {
    if (this.#state !== "open") return;
    this.#entryCount += 1;
    const bytes = ENTRY_OVERHEAD_BYTES + happening.data.length;
    const taken = this.#recorder.memory.reserve(bytes);
    this.#entriesHeldBytes += taken;
    if (taken === bytes) this.#entries.push(happening);
    this.#recorder.onChanged(this);
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
    this.#recorder.onEnded(this);
  }
}

const NO_BODY: CapturedBody = { bytes: new Uint8Array(), isCut: false };

/** What a message or an event holds in memory beside its text. */
const ENTRY_OVERHEAD_BYTES = 200;

/** A compressed one can't be split here. */
function isUncompressedEventStream(lines: string[]): boolean {
  let isEventStream = false;
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i]!.toLowerCase();
    if (name === "content-encoding" && lines[i + 1]!.toLowerCase() !== "identity") return false;
    if (name === "content-type") {
      isEventStream = lines[i + 1]!.trim().toLowerCase().startsWith("text/event-stream");
    }
  }
  return isEventStream;
}
