/**
 * One visit while it is recorded: whoever carries it tells what passes. It costs the visitor a few references
 * and the copies of small bodies; all else is done when it is written.
 */
import { STATUS_BY_CODE, type ErrorCode } from "../../../protocol/errors.ts";
import { FRAME_CAPTURE_MAX_BYTES } from "../../limits.ts";
import type { CaptureKind, CaptureState } from "../../../protocol/schemas/inspector/captures.ts";
import { PassingBody } from "./body.ts";
import { EventStream } from "./event-stream.ts";
import type { CaptureMemory } from "./memory.ts";
import type { Sealed } from "./page.ts";
import type {
  CaptureRecord,
  Happening,
  HappeningLog,
  HeadLines,
  KeptBodies,
  KeptBody,
  LongRow,
  Message,
} from "./record.ts";
import { redacted } from "./redaction.ts";

/** What is to be kept, by the owner's newest settings. */
export interface Kept {
  bodies: boolean;
  redact: ReadonlySet<string>;
}

/** Who writes it down. */
export interface Recorder {
  memory: CaptureMemory;
  /** There is something to write of one that is open. */
  changed(recording: Recording): void;
  /** It is one that will be open for long: somebody may want to see it before it is over. */
  lasts(recording: Recording): void;
  over(recording: Recording): void;
}

/** As it begins. */
export interface Visit {
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
  isLong = false;
  /** Where its messages or events are. */
  log: HappeningLog = { total: 0, firstPage: 0, lastPage: 0 };
  readonly #recorder: Recorder;
  readonly #kept: Kept;
  readonly #visit: Visit;
  readonly #request = new PassingBody();
  readonly #response = new PassingBody();
  #responseLines: string[] = [];
  #kind: CaptureKind;
  #state: CaptureState = "open";
  #status: number | null = null;
  #latencyMs: number | null = null;
  #durationMs: number | null = null;
  #error: ErrorCode | null = null;
  #events: EventStream | undefined;
  /** Messages and events that are not written yet. */
  #happenings: Happening[] = [];
  #happened = 0;
  #happeningsHeldBytes = 0;

  constructor(recorder: Recorder, kept: Kept, id: string, atMs: number, visit: Visit) {
    this.id = id;
    this.atMs = atMs;
    this.#recorder = recorder;
    this.#kept = kept;
    this.#visit = visit;
    this.#kind = visit.isSocket ? "websocket" : "http";
    if (!visit.hasBody) this.#request.end();
  }

  /** A WebSocket's, whose tunnel slept meanwhile. */
  static resumed(recorder: Recorder, kept: Kept, row: LongRow): Recording {
    const { record, lines } = row;
    const { id, atMs, method, path, query, clientIp, replayOf } = record;
    const target = query === null ? path : `${path}?${query}`;
    const parts = [method, target, ...lines.request];
    const visit = { parts, hasBody: false, isSocket: true, clientIp, replayOf };
    const recording = new Recording(recorder, kept, id, atMs, visit);
    recording.isLong = true;
    recording.log = row.log;
    recording.#responseLines = lines.response;
    recording.#status = record.status;
    recording.#latencyMs = record.latencyMs;
    recording.#request.size = record.requestSize;
    recording.#response.size = record.responseSize;
    return recording;
  }

  // ── Told by whoever carries the visit ──

  requestBytes(bytes: Uint8Array): void {
    if (this.#state === "open") this.#request.add(bytes, this.#bodyMemory);
  }

  requestEnded(): void {
    this.#request.end();
  }

  /** @param lines names and values in turn, as the local server sent them. */
  answered(status: number, lines: string[]): void {
    this.#status = status;
    this.#responseLines = lines;
    this.#latencyMs = Date.now() - this.atMs;
    const isEventStream = this.#kind === "http" && isPlainEventStream(lines);
    if (isEventStream) {
      this.#kind = "sse";
      this.#events = new EventStream();
    }
    if (isEventStream || status === 101) this.#recorder.lasts(this);
  }

  responseBytes(bytes: Uint8Array): void {
    if (this.#state !== "open") return;
    this.#response.add(bytes, this.#bodyMemory);
    for (const event of this.#events?.read(bytes, Date.now()) ?? []) {
      this.#keep(this.#kept.bodies ? event : { ...event, data: "" });
    }
  }

  /** A message of the WebSocket, whole. */
  message(from: "client" | "server", kind: "text" | "binary", bytes: Uint8Array): void {
    (from === "client" ? this.#request : this.#response).size += bytes.byteLength;
    this.#keepMessage(from, kind, bytes);
  }

  /** The WebSocket was closed. By 1006: it vanished. */
  closed(from: "client" | "server", code: number, reason: string): void {
    const words = new TextEncoder().encode(reason);
    const bytes = new Uint8Array(2 + words.byteLength);
    new DataView(bytes.buffer).setUint16(0, code);
    bytes.set(words, 2);
    this.#keepMessage(from, "close", bytes);
    if (code !== 1006) this.complete();
    else this.#end(from === "client" ? "aborted" : "failed");
  }

  complete(): void {
    this.#response.end();
    this.#end("complete");
  }

  /** The visitor left. */
  aborted(): void {
    this.#end("aborted");
  }

  /** There is no answer, or no more of one. */
  failed(code: ErrorCode): void {
    this.#endFor("failed", code);
  }

  /** By what stands before the tunnel. */
  refused(code: ErrorCode): void {
    this.#endFor("refused", code);
  }

  // ── Told by whoever writes it down ──

  get isOpen(): boolean {
    return this.#state === "open";
  }

  get record(): CaptureRecord {
    const { id, atMs } = this;
    const { parts, clientIp, replayOf } = this.#visit;
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
    const { redact } = this.#kept;
    return {
      request: redacted(this.#visit.parts.slice(2), redact),
      response: redacted(this.#responseLines, redact),
    };
  }

  get bodies(): KeptBodies {
    // The messages of a WebSocket are in its log.
    const isSocket = this.#kind === "websocket" && this.#status === 101;
    if (isSocket) return { request: NO_BODY, response: NO_BODY };
    return { request: this.#request.kept(), response: this.#response.kept() };
  }

  /** What its bodies took of the memory. */
  get heldBytes(): number {
    return this.#request.heldBytes + this.#response.heldBytes;
  }

  /** When it is over. */
  seal(): Sealed {
    const { id, bodies, heldBytes } = this;
    const record = JSON.stringify(this.record);
    return { id, record, lines: JSON.stringify(this.lines), bodies, heldBytes };
  }

  /** @returns what happened since this was asked last, and how many of it there were: some may be missing. */
  takeHappenings(): { happenings: Happening[]; happened: number } {
    const { memory } = this.#recorder;
    const taken = { happenings: this.#happenings, happened: this.#happened };
    memory.giveBack(this.#happeningsHeldBytes);
    this.#happenings = [];
    this.#happened = 0;
    this.#happeningsHeldBytes = 0;
    return taken;
  }

  // ── Inside ──

  get #bodyMemory(): CaptureMemory | null {
    return this.#kept.bodies ? this.#recorder.memory : null;
  }

  #keepMessage(from: Message["from"], kind: Message["kind"], bytes: Uint8Array): void {
    const data = this.#kept.bodies ? bytes.slice(0, FRAME_CAPTURE_MAX_BYTES) : new Uint8Array();
    this.#keep({ atMs: Date.now(), size: bytes.byteLength, from, kind, data });
  }

  #keep(happening: Happening): void {
    if (this.#state !== "open") return;
    this.#happened += 1;
    const bytes = HAPPENING_BYTES + happening.data.length;
    const taken = this.#recorder.memory.take(bytes);
    this.#happeningsHeldBytes += taken;
    if (taken === bytes) this.#happenings.push(happening);
    this.#recorder.changed(this);
  }

  #endFor(state: CaptureState, code: ErrorCode): void {
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
    this.#recorder.over(this);
  }
}

const NO_BODY: KeptBody = { bytes: new Uint8Array(), isCut: false };

/** What a message or an event holds in memory beside its text. */
const HAPPENING_BYTES = 200;

/** A compressed one can't be split here. */
function isPlainEventStream(lines: string[]): boolean {
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
