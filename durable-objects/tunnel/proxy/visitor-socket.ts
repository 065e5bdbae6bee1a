/**
 * One visitor's WebSocket and its stream on the agent's connection. The visitor's end is a hibernating socket,
 * so that an idle one costs nothing: the state that a hibernation must preserve is in its attachment. Each
 * message is granted in full at once, so that no partly used window has to be preserved.
 */
import { ReceiveWindow } from "../../../protocol/wire/flow-control.ts";
import {
  parseCodeAndText,
  FLAG,
  FRAME,
  RESET,
  decodeStrictText,
  type Frame,
} from "../../../protocol/wire/frames.ts";
import {
  FRAME_DATA_MAX_BYTES,
  WEBSOCKET_MESSAGE_MAX_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import type { AgentLink, Stream } from "../agents/agent-link.ts";
import type { Recording } from "../captures/recording.ts";
import { PacedQueue } from "./pacer.ts";
import type { Usage } from "../metrics/usage.ts";
import { concatBytes } from "../../../shared/bytes.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** The most bytes that wait for a slow local server before the visitor's WebSocket is closed. */
const SOCKET_BACKLOG_MAX_BYTES = 2 * WEBSOCKET_MESSAGE_MAX_BYTES;
/** A fragmented WebSocket message must be complete within this time. */
const SOCKET_MESSAGE_MAX_MS = MINUTE_MS;

type MessageType = typeof FRAME.text | typeof FRAME.binary;

const encoder = new TextEncoder();

export class VisitorSocket implements Stream {
  readonly #link: AgentLink;
  readonly #id: number;
  readonly #socket: WebSocket;
  readonly #usage: Usage;
  readonly #recording: Recording | null;
  readonly #window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  readonly #toAgent: PacedQueue;
  readonly #toVisitor: PacedQueue;
  /** Parts of the agent's current message. */
  #parts: Uint8Array[] = [];
  #partsBytes = 0;
  #stallTimer: ReturnType<typeof setTimeout> | undefined;
  /** The visitor's messages that the pacer has passed, and that have no credit yet. */
  #backlog: { type: MessageType; rest: Uint8Array; length: number }[] = [];
  #backlogBytes = 0;
  #closing: { code: number; reason: string } | undefined;

  constructor(
    link: AgentLink,
    id: number,
    socket: WebSocket,
    usage: Usage,
    recording: Recording | null,
  ) {
    this.#link = link;
    this.#id = id;
    this.#socket = socket;
    this.#usage = usage;
    this.#recording = recording;
    this.#toAgent = new PacedQueue(link.pace.toAgent);
    this.#toVisitor = new PacedQueue(link.pace.toVisitors);
  }

  // ── Called by the visitor's WebSocket ──

  onMessage(message: string | ArrayBuffer): void {
    const type = typeof message === "string" ? FRAME.text : FRAME.binary;
    const bytes = typeof message === "string" ? encoder.encode(message) : new Uint8Array(message);
    this.#usage.countIn(bytes.byteLength);
    this.#recording?.addMessage("client", toMessageKind(type), bytes);
    this.#backlogBytes += bytes.byteLength;
    this.#toAgent.push(bytes.byteLength, () => {
      this.#backlog.push({ type, rest: bytes, length: bytes.byteLength });
      this.#sendBacklog();
    });
    if (this.#backlogBytes > SOCKET_BACKLOG_MAX_BYTES) {
      this.#end(1013, "the local server is too slow");
      this.#link.reset(this.#id, RESET.tooLarge, "the local server reads too slowly");
    }
  }

  /** The visitor closed; the agent closes its end with the same code and reason, after the waiting messages. */
  onClosed(code: number, reason: string): void {
    this.#recording?.recordClose("client", code, reason);
    this.#toAgent.push(0, () => {
      this.#closing = { code, reason };
      this.#sendBacklog();
    });
  }

  // ── Called by the link ──

  onFrame(frame: Frame): boolean {
    if (frame.type === FRAME.close) return this.#receiveClose(frame);
    if (frame.type !== FRAME.text && frame.type !== FRAME.binary) return false;
    if (!this.#window.recordReceived(frame.payload.byteLength)) return false;
    this.#toVisitor.push(frame.payload.byteLength, () => this.#receivePart(frame));
    return true;
  }

  onReset(): void {
    this.#recording?.fail("origin_failed");
    this.#end(1011, "the local server's connection broke");
  }

  onConnectionLost(): void {
    this.#recording?.fail("agent_offline");
    this.#end(1012, "the tunnel's agent disconnected");
  }

  // ── Inside ──

  #receiveClose(frame: Frame): boolean {
    const close = parseCodeAndText(frame.payload);
    if (!close) return false;
    this.#recording?.recordClose("server", close.code, close.text);
    this.#toVisitor.push(0, () => {
      this.#link.finish(this.#id);
      this.#end(close.code, close.text);
      this.#link.windows.drop(this.#id);
    });
    return true;
  }

  #receivePart(frame: Frame): void {
    this.#partsBytes += frame.payload.byteLength;
    if (this.#partsBytes > WEBSOCKET_MESSAGE_MAX_BYTES) {
      this.#end(1009, "message too large");
      return this.#link.reset(this.#id, RESET.tooLarge, "WebSocket message too large");
    }
    this.#window.recordConsumed(frame.payload.byteLength);
    if (frame.flags & FLAG.more) this.#holdPart(frame.payload);
    else this.#deliver(frame);
    this.#grant(this.#window.takeCredit());
  }

  #holdPart(part: Uint8Array): void {
    this.#parts.push(part);
    this.#stayAwake();
  }

  /** A pending timer prevents hibernation, which would lose parts and backlog. */
  #stayAwake(): void {
    this.#stallTimer ??= setTimeout(() => {
      this.onReset();
      this.#link.reset(this.#id, RESET.cancelled, "a WebSocket message stalled");
    }, SOCKET_MESSAGE_MAX_MS);
  }

  #allowHibernation(): void {
    if (this.#parts.length > 0 || this.#backlog.length > 0) return;
    if (this.#stallTimer !== undefined) clearTimeout(this.#stallTimer);
    this.#stallTimer = undefined;
  }

  #deliver(frame: Frame): void {
    const whole =
      this.#parts.length === 0 ? frame.payload : concatBytes([...this.#parts, frame.payload]);
    this.#parts = [];
    this.#partsBytes = 0;
    this.#allowHibernation();
    this.#usage.countOut(whole.byteLength);
    this.#recording?.addMessage("server", toMessageKind(frame.type), whole);
    const message = frame.type === FRAME.text ? decodeStrictText(whole) : whole;
    if (message === null) {
      this.#end(1007, "text that is not UTF-8");
      return this.#link.reset(this.#id, RESET.protocolError, "text that is not UTF-8");
    }
    try {
      this.#socket.send(message);
    } catch {
      // The visitor has closed; the close event ends the stream.
    }
  }

  #sendBacklog(): void {
    for (let next = this.#backlog[0]; next; next = this.#backlog[0]) {
      const available = this.#link.windows.available(this.#id);
      if (available <= 0 && next.rest.byteLength > 0) {
        this.#stayAwake();
        return this.#link.windows.whenAvailable(this.#id, () => this.#sendBacklog());
      }
      const part = next.rest.subarray(0, Math.min(available, FRAME_DATA_MAX_BYTES));
      next.rest = next.rest.subarray(part.byteLength);
      const { type } = next;
      const flags = next.rest.byteLength > 0 ? FLAG.more : 0;
      this.#link.windows.recordSent(this.#id, part.byteLength);
      this.#link.send((writer) => writer.writeBytes(type, flags, this.#id, part));
      if (flags === 0) {
        this.#backlog.shift();
        this.#backlogBytes -= next.length;
      }
    }
    this.#allowHibernation();
    if (this.#closing) this.#sendClose(this.#closing);
  }

  #sendClose({ code, reason }: { code: number; reason: string }): void {
    this.#closing = undefined;
    this.#link.send((writer) => writer.writeCodeAndText(FRAME.close, this.#id, code, reason));
    this.#link.finish(this.#id);
    this.#link.windows.drop(this.#id);
  }

  #grant(bytes: number): void {
    if (bytes > 0) this.#link.send((writer) => writer.writeCredit(this.#id, bytes));
  }

  #end(code: number, reason: string): void {
    this.#toAgent.clear();
    this.#toVisitor.clear();
    this.#parts = [];
    this.#backlog = [];
    this.#backlogBytes = 0;
    this.#allowHibernation();
    this.#recording?.fail("origin_failed");
    try {
      // 1005: the local server closed without a code. 1006: its connection broke; no Close frame may say so.
      if (code === 1005) this.#socket.close();
      else this.#socket.close(code === 1006 ? 1011 : code, reason);
    } catch {
      // Closed already, or a code that the platform does not send.
      closeNormally(this.#socket);
    }
  }
}

function toMessageKind(type: number): "text" | "binary" {
  return type === FRAME.text ? "text" : "binary";
}

function closeNormally(socket: WebSocket): void {
  try {
    socket.close(1000);
  } catch {
    // Closed already.
  }
}
