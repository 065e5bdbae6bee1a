/**
 * One visitor's WebSocket and its stream on the agent's connection. The visitor's end is a hibernating socket,
 * so that an idle one costs nothing: the state that a hibernation must preserve is in its attachment. Once the visitor
 * has read a message it is granted in full, so that no partly used window has to be preserved.
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
import { parseAcknowledgement } from "../../../protocol/acknowledgements.ts";
import {
  FRAME_DATA_MAX_BYTES,
  WEBSOCKET_MESSAGE_MAX_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import type { AgentLink, Stream } from "../agents/agent-link.ts";
import type { Recording } from "../captures/recording.ts";
import { PacedQueue } from "./pacer.ts";
import { SendQueue } from "./send-queue.ts";
import type { MemoryHolder, SocketMemory } from "./socket-memory.ts";
import type { Usage } from "../metrics/usage.ts";
import { BoundedBuffer } from "../../../shared/bounded-buffer.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** A fragmented WebSocket message must be complete within this time. */
const SOCKET_MESSAGE_MAX_MS = MINUTE_MS;
/** What a waiting message costs beside its bytes: empty ones must not be free. */
const MESSAGE_OVERHEAD_BYTES = 128;

type MessageType = typeof FRAME.text | typeof FRAME.binary;

const encoder = new TextEncoder();

export interface VisitorSocketDeps {
  /** Of the front proxy's acknowledgements; null where there is none. */
  acknowledgementKey: string | null;
  usage: Usage;
  memory: SocketMemory;
  recording: Recording | null;
}

export class VisitorSocket implements Stream, MemoryHolder {
  readonly #link: AgentLink;
  readonly #id: number;
  readonly #socket: WebSocket;
  readonly #deps: VisitorSocketDeps;
  readonly #window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  readonly #toAgent: PacedQueue;
  readonly #toVisitor: PacedQueue;
  /** What the platform has queued for the visitor. */
  readonly #sendQueue: SendQueue;
  /** Bytes of the agent's frames that wait for the pacer. */
  #pacedBytes = 0;
  /** The parts of the agent's current message. */
  #parts: BoundedBuffer | undefined;
  /** Bytes of frames that have passed, but that the visitor may not have read: their credit is held back. */
  #unreadBytes = 0;
  /** Messages that were sent since the send queue was last short. */
  #unreadMessages = 0;
  #stallTimer: ReturnType<typeof setTimeout> | undefined;
  /** The visitor's messages that the pacer has passed, and that have no credit yet. */
  #backlog: { type: MessageType; rest: Uint8Array; length: number }[] = [];
  /** Including messages that wait for the pacer. */
  #backlogBytes = 0;
  #closing: { code: number; reason: string } | undefined;
  #isEnded = false;

  constructor(link: AgentLink, id: number, socket: WebSocket, deps: VisitorSocketDeps) {
    this.#link = link;
    this.#id = id;
    this.#socket = socket;
    this.#deps = deps;
    this.#toAgent = new PacedQueue(link.pace.toAgent);
    this.#toVisitor = new PacedQueue(link.pace.toVisitors);
    this.#sendQueue = new SendQueue(socket, deps.acknowledgementKey !== null, {
      onShort: () => this.#grantUnread(),
      onStalled: () => this.#giveUp("the visitor reads too slowly"),
    });
  }

  // ── Called by the visitor's WebSocket ──

  onMessage(message: string | ArrayBuffer): void {
    const { acknowledgementKey: key } = this.#deps;
    if (key !== null && typeof message === "string") {
      const bytes = parseAcknowledgement(key, message);
      if (bytes !== null) return this.#sendQueue.acknowledge(bytes);
    }
    if (this.#isEnded) return;
    const type = typeof message === "string" ? FRAME.text : FRAME.binary;
    const bytes = typeof message === "string" ? encoder.encode(message) : new Uint8Array(message);
    this.#deps.usage.countIn(bytes.byteLength);
    this.#deps.recording?.addMessage("client", toMessageKind(type), bytes);
    this.#backlogBytes += bytes.byteLength + MESSAGE_OVERHEAD_BYTES;
    this.#toAgent.push(bytes.byteLength, () => {
      this.#backlog.push({ type, rest: bytes, length: bytes.byteLength });
      this.#sendBacklog();
    });
    this.#recordMemory();
  }

  /** The visitor closed; the agent closes its end with the same code and reason, after the waiting messages. */
  onClosed(code: number, reason: string): void {
    this.#sendQueue.stop();
    this.#unreadBytes = 0;
    this.#unreadMessages = 0;
    this.#recordMemory();
    if (this.#isEnded) return;
    this.#deps.recording?.recordClose("client", code, reason);
    this.#toAgent.push(0, () => {
      this.#closing = { code, reason };
      this.#sendBacklog();
    });
  }

  // ── Called by the link ──

  onFrame(frame: Frame): boolean {
    if (frame.type === FRAME.close) return this.#receiveClose(frame);
    if (frame.type !== FRAME.text && frame.type !== FRAME.binary) return false;
    const { byteLength } = frame.payload;
    if (!this.#window.recordReceived(byteLength)) return false;
    this.#pacedBytes += byteLength + MESSAGE_OVERHEAD_BYTES;
    let hasPassed = false;
    let held = frame;
    this.#toVisitor.push(byteLength, () => {
      hasPassed = true;
      this.#pacedBytes -= byteLength + MESSAGE_OVERHEAD_BYTES;
      this.#receivePart(held);
    });
    // A view would keep the whole message of the agent in memory.
    if (!hasPassed) held = { ...frame, payload: frame.payload.slice() };
    this.#recordMemory();
    return true;
  }

  onReset(): void {
    this.#deps.recording?.fail("origin_failed");
    this.#end(1011, "the local server's connection broke");
  }

  onConnectionLost(): void {
    this.#deps.recording?.fail("agent_offline");
    this.#end(1012, "the tunnel's agent disconnected");
  }

  // ── Called by the tunnel's memory ──

  endForMemory(): void {
    const isVisitorSlow = this.#pacedBytes + this.#sendQueue.bytes > this.#backlogBytes;
    const slow = isVisitorSlow ? "the visitor reads" : "the local server reads";
    this.#giveUp(`${slow} too slowly`);
  }

  // ── Inside ──

  #receiveClose(frame: Frame): boolean {
    const close = parseCodeAndText(frame.payload);
    if (!close) return false;
    this.#deps.recording?.recordClose("server", close.code, close.text);
    this.#toVisitor.push(0, () => {
      this.#link.finish(this.#id);
      this.#end(close.code, close.text);
      this.#link.windows.drop(this.#id);
    });
    return true;
  }

  #receivePart(frame: Frame): void {
    const { payload, flags } = frame;
    const isWhole = !this.#parts && !(flags & FLAG.more);
    this.#unreadBytes += payload.byteLength;
    if (isWhole) this.#deliver(frame.type, payload);
    else if (!this.#addPart(payload)) {
      this.#end(1009, "message too large");
      this.#link.reset(this.#id, RESET.tooLarge, "WebSocket message too large");
    } else if (!(flags & FLAG.more)) this.#deliver(frame.type, this.#takeParts());
    if (!this.#isEnded) this.#sendQueue.watch();
  }

  #addPart(part: Uint8Array): boolean {
    this.#parts ??= new BoundedBuffer(WEBSOCKET_MESSAGE_MAX_BYTES);
    this.#stayAwake();
    return this.#parts.append(part);
  }

  #takeParts(): Uint8Array {
    const { bytes } = this.#parts!;
    this.#parts = undefined;
    this.#allowHibernation();
    return bytes;
  }

  /** A pending timer prevents hibernation, which would lose parts and backlog. */
  #stayAwake(): void {
    this.#stallTimer ??= setTimeout(() => {
      this.onReset();
      this.#link.reset(this.#id, RESET.cancelled, "a WebSocket message stalled");
    }, SOCKET_MESSAGE_MAX_MS);
  }

  #allowHibernation(): void {
    if (this.#parts || this.#backlog.length > 0) return;
    if (this.#stallTimer !== undefined) clearTimeout(this.#stallTimer);
    this.#stallTimer = undefined;
  }

  #deliver(type: number, bytes: Uint8Array): void {
    this.#deps.usage.countOut(bytes.byteLength);
    this.#deps.recording?.addMessage("server", toMessageKind(type), bytes);
    const message = type === FRAME.text ? decodeStrictText(bytes) : bytes;
    if (message === null) {
      this.#end(1007, "text that is not UTF-8");
      return this.#link.reset(this.#id, RESET.protocolError, "text that is not UTF-8");
    }
    try {
      this.#socket.send(message);
      this.#sendQueue.recordSent(bytes.byteLength);
      this.#unreadMessages += 1;
    } catch {
      // The visitor has closed; the close event ends the stream.
    }
  }

  /** The visitor has read: the agent may send as much again. */
  #grantUnread(): void {
    const bytes = this.#window.recordConsumed(this.#unreadBytes) + this.#window.takeCredit();
    this.#unreadBytes = 0;
    this.#unreadMessages = 0;
    if (bytes > 0) this.#link.send((writer) => writer.writeCredit(this.#id, bytes));
    this.#recordMemory();
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
        this.#backlogBytes -= next.length + MESSAGE_OVERHEAD_BYTES;
      }
    }
    this.#allowHibernation();
    this.#recordMemory();
    if (this.#closing) this.#sendClose(this.#closing);
  }

  #sendClose({ code, reason }: { code: number; reason: string }): void {
    this.#closing = undefined;
    this.#isEnded = true;
    this.#link.send((writer) => writer.writeCodeAndText(FRAME.close, this.#id, code, reason));
    this.#link.finish(this.#id);
    this.#link.windows.drop(this.#id);
  }

  #recordMemory(): void {
    const queuedBytes = this.#sendQueue.isLong
      ? this.#sendQueue.bytes + this.#unreadMessages * MESSAGE_OVERHEAD_BYTES
      : 0;
    const waitingBytes =
      this.#pacedBytes + this.#backlogBytes + (this.#parts?.bytes.byteLength ?? 0);
    this.#deps.memory.record(this, queuedBytes + waitingBytes);
  }

  #giveUp(reason: string): void {
    if (this.#isEnded) return;
    this.#end(1013, reason);
    this.#link.reset(this.#id, RESET.tooLarge, reason);
  }

  #end(code: number, reason: string): void {
    this.#isEnded = true;
    this.#closing = undefined;
    this.#toAgent.clear();
    this.#toVisitor.clear();
    this.#parts = undefined;
    this.#backlog = [];
    this.#backlogBytes = 0;
    this.#pacedBytes = 0;
    this.#allowHibernation();
    this.#recordMemory();
    this.#sendQueue.stop();
    this.#deps.recording?.fail("origin_failed");
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
