/**
 * One visitor's WebSocket and its stream on the agent's connection. The visitor's end is a hibernating socket,
 * so that an idle one costs nothing: the state that a hibernation must preserve is in its attachment. Once the visitor
 * has read a message it is granted in full, so that no partly used window has to be preserved.
 */
import { ReceiveWindow } from "../../../../protocol/wire/flow-control.ts";
import {
  parseCodeAndText,
  FLAG,
  FRAME,
  RESET,
  decodeStrictText,
  type Frame,
} from "../../../../protocol/wire/frames.ts";
import type { ErrorCode } from "../../../../protocol/errors.ts";
import { parseAcknowledgement } from "../../../../protocol/front-proxy/acknowledgements.ts";
import {
  FRAME_DATA_MAX_BYTES,
  MESSAGE_OVERHEAD_BYTES,
  WEBSOCKET_MESSAGE_MAX_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../../protocol/limits.ts";
import type { AgentLink, Stream } from "../../agents/agent-link.ts";
import type { Recording } from "../../captures/recording.ts";
import { PacedQueue } from "../pacer.ts";
import { SendQueue } from "../send-queue.ts";
import type { MemoryHolder, SocketMemory } from "./socket-memory.ts";
import type { Usage } from "../../metrics/usage.ts";
import { BoundedBuffer } from "../../../../shared/bounds/bounded-buffer.ts";
import { freeBytes, toUtf8 } from "../../../../shared/bytes.ts";
import { MINUTE_MS } from "../../../../shared/time.ts";
import { closeQuietly, type SocketClose } from "../../../websockets.ts";

/** A socket with an incomplete message, or with messages that wait for credit, may not be without progress for longer. */
export const STALLED_SOCKET_MAX_MS = MINUTE_MS;
/** How long the local server may take to answer a visitor's Close with its own. */
export const CLOSE_ANSWER_MAX_MS = 10_000;

type MessageType = typeof FRAME.text | typeof FRAME.binary;

interface VisitorSocketDeps {
  /** The key of the front proxy's acknowledgements; null where no front proxy acknowledges. */
  acknowledgementKey: string | null;
  usage: Usage;
  memory: SocketMemory;
  /** undefined: it has ended, or nothing is recorded. */
  findRecording(): Recording | undefined;
  /** Called once, when both the visitor and the stream have ended. */
  onDone(): void;
}

export class VisitorSocket implements Stream, MemoryHolder {
  readonly #link: AgentLink;
  readonly #id: number;
  readonly #socket: WebSocket;
  readonly #deps: VisitorSocketDeps;
  readonly #window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  readonly #toAgent: PacedQueue;
  readonly #toVisitor: PacedQueue;
  /** The messages that the platform has queued for the visitor. */
  readonly #sendQueue: SendQueue;
  /** Bytes of the agent's frames that wait for the pacer. */
  #pacedBytes = 0;
  /** The parts of the agent's current message. */
  #parts: BoundedBuffer | undefined;
  /** Bytes of frames that have passed, but that the visitor may not have read: their credit is held back. */
  #unreadBytes = 0;
  #stallTimer: ReturnType<typeof setTimeout> | undefined;
  /** The visitor's messages that the pacer has passed, and that have no credit yet. */
  #backlog: { type: MessageType; rest: Uint8Array<ArrayBuffer>; length: number }[] = [];
  /** Including messages that wait for the pacer. */
  #backlogBytes = 0;
  /** The visitor's Close, which is sent to the agent after the backlog. */
  #closing: SocketClose | undefined;
  /**
   * Set when the visitor has closed or was lost. Until the stream ends, the local server's messages still go to the
   * visitor.
   */
  #visitorClose: SocketClose | undefined;
  #answerTimer: ReturnType<typeof setTimeout> | undefined;
  #isEnded = false;

  constructor(link: AgentLink, id: number, socket: WebSocket, deps: VisitorSocketDeps) {
    this.#link = link;
    this.#id = id;
    this.#socket = socket;
    this.#deps = deps;
    this.#toAgent = new PacedQueue(link.pace.toAgent);
    this.#toVisitor = new PacedQueue(link.pace.toVisitors);
    this.#sendQueue = new SendQueue(socket, {
      isAcknowledged: deps.acknowledgementKey !== null,
      onShort: () => this.#grantUnread(),
      onStalled: () => this.#giveUp("the visitor reads too slowly"),
    });
  }

  // ── Called by the visitor's WebSocket ──

  onMessage(message: string | ArrayBuffer): void {
    const { acknowledgementKey: key } = this.#deps;
    if (key !== null && typeof message === "string") {
      const read = parseAcknowledgement(key, message);
      if (read !== null) return this.#sendQueue.acknowledge(read);
    }
    if (this.#isEnded) return;
    const type = typeof message === "string" ? FRAME.text : FRAME.binary;
    const bytes = typeof message === "string" ? toUtf8(message) : new Uint8Array(message);
    this.#deps.usage.countIn(bytes.byteLength);
    this.#deps.findRecording()?.addMessage("client", toMessageKind(type), bytes);
    this.#backlogBytes += bytes.byteLength + MESSAGE_OVERHEAD_BYTES;
    this.#toAgent.push(bytes.byteLength, () => {
      this.#backlog.push({ type, rest: bytes, length: bytes.byteLength });
      this.#sendBacklog();
    });
    this.#recordMemory();
  }

  /**
   * The visitor closed, or was lost. The agent closes its end with the same code and reason, after the waiting messages. The
   * visitor's Close is answered with the local server's, after the messages that come before it (RFC 6455 §7.1.5).
   */
  onClosed(close: SocketClose): void {
    if (this.#visitorClose) return;
    this.#visitorClose = close;
    if (this.#isEnded) return this.#release();
    // An acknowledgement would be a message, and none may follow a Close.
    this.#sendQueue.ignoreAcknowledgements();
    this.#deps.findRecording()?.recordClose("client", close.code, close.reason);
    this.#toAgent.push(0, () => {
      this.#closing = close;
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
    this.#fail(1011, "the local server's connection broke");
  }

  onConnectionLost(): void {
    this.#fail(1012, "the tunnel's agent disconnected", "agent_offline");
  }

  // ── Called by the tunnel's memory ──

  endForMemory(): void {
    const isVisitorSlow = this.#pacedBytes + this.#sendQueue.heldBytes >= this.#backlogBytes;
    const slow = isVisitorSlow ? "the visitor reads" : "the local server reads";
    this.#giveUp(`${slow} too slowly`);
  }

  // ── Inside ──

  #receiveClose(frame: Frame): boolean {
    const close = parseCodeAndText(frame.payload);
    if (!close) return false;
    const { code, text: reason } = close;
    clearTimeout(this.#answerTimer);
    this.#deps.findRecording()?.recordClose("server", code, reason);
    this.#toVisitor.push(0, () => {
      this.#link.finish(this.#id);
      // 1006: its connection broke. No Close frame may say so.
      if (code === 1006) this.#fail(1011, reason);
      else this.#end({ code, reason });
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
      this.#fail(1009, "message too large");
      this.#link.reset(this.#id, RESET.tooLarge, "WebSocket message too large");
    } else if (!(flags & FLAG.more)) this.#deliver(frame.type, this.#takeParts());
    if (!this.#isEnded) this.#sendQueue.watch();
  }

  #addPart(part: Uint8Array): boolean {
    this.#parts ??= new BoundedBuffer(WEBSOCKET_MESSAGE_MAX_BYTES);
    this.#restartStallTimer();
    return this.#parts.append(part);
  }

  #takeParts(): Uint8Array {
    const { bytes } = this.#parts!;
    this.#parts = undefined;
    this.#restartStallTimer();
    return bytes;
  }

  /** Something has arrived or was sent, so the time without progress starts again. */
  #restartStallTimer(): void {
    this.#stopStallTimer();
    this.#updateStallTimer();
  }

  /** While there are parts or a backlog, a timer is pending. It also prevents hibernation, which would lose them. */
  #updateStallTimer(): void {
    const isIncomplete = this.#parts !== undefined || this.#backlog.length > 0;
    if (!isIncomplete) return this.#stopStallTimer();
    this.#stallTimer ??= setTimeout(() => {
      this.onReset();
      this.#link.reset(this.#id, RESET.canceled, "a WebSocket message stalled");
    }, STALLED_SOCKET_MAX_MS);
  }

  #stopStallTimer(): void {
    clearTimeout(this.#stallTimer);
    this.#stallTimer = undefined;
  }

  #deliver(type: number, bytes: Uint8Array): void {
    this.#deps.usage.countOut(bytes.byteLength);
    this.#deps.findRecording()?.addMessage("server", toMessageKind(type), bytes);
    const message = type === FRAME.text ? decodeStrictText(bytes) : bytes;
    if (message === null) {
      this.#fail(1007, "text that is not UTF-8");
      return this.#link.reset(this.#id, RESET.protocolError, "text that is not UTF-8");
    }
    try {
      this.#socket.send(message);
      this.#sendQueue.recordSent(bytes.byteLength);
    } catch {
      // The visitor has closed; the close event ends the stream.
    }
  }

  /** The visitor has read these bytes: the agent may send as many more. */
  #grantUnread(): void {
    const bytes = this.#window.recordConsumed(this.#unreadBytes) + this.#window.takeCredit();
    this.#unreadBytes = 0;
    if (bytes > 0) this.#link.send((writer) => writer.writeCredit(this.#id, bytes));
    this.#recordMemory();
  }

  #sendBacklog(): void {
    for (let next = this.#backlog[0]; next; next = this.#backlog[0]) {
      const available = this.#link.windows.available(this.#id);
      if (available <= 0 && next.rest.byteLength > 0) {
        this.#updateStallTimer();
        return this.#link.windows.whenAvailable(this.#id, () => this.#sendBacklog());
      }
      const part = next.rest.subarray(0, Math.min(available, FRAME_DATA_MAX_BYTES));
      next.rest = next.rest.subarray(part.byteLength);
      const { type } = next;
      const flags = next.rest.byteLength > 0 ? FLAG.more : 0;
      this.#link.windows.recordMessageSent(this.#id, part.byteLength);
      this.#link.send((writer) => writer.writeBytes(type, flags, this.#id, part));
      this.#stopStallTimer();
      if (flags === 0) {
        this.#backlog.shift();
        freeBytes(next.rest);
        this.#backlogBytes -= next.length + MESSAGE_OVERHEAD_BYTES;
      }
    }
    this.#updateStallTimer();
    this.#recordMemory();
    if (this.#closing) this.#sendClose(this.#closing);
  }

  #sendClose(close: SocketClose): void {
    const { code, reason } = close;
    this.#closing = undefined;
    this.#link.send((writer) => writer.writeCodeAndText(FRAME.close, this.#id, code, reason));
    if (code !== 1006 && this.#link.attachment.hello?.answersClose) {
      this.#answerTimer = setTimeout(() => {
        this.#link.reset(this.#id, RESET.canceled, "the local server does not close");
        this.#end(close);
      }, CLOSE_ANSWER_MAX_MS);
      return;
    }
    this.#link.abandon(this.#id);
    this.#end(close);
  }

  #recordMemory(): void {
    if (this.#isEnded) return;
    const waitingBytes =
      this.#pacedBytes + this.#backlogBytes + (this.#parts?.bytes.byteLength ?? 0);
    this.#deps.memory.record(this, this.#sendQueue.heldBytes + waitingBytes);
  }

  #giveUp(reason: string): void {
    if (this.#isEnded) return;
    this.#fail(1013, reason);
    this.#link.reset(this.#id, RESET.tooLarge, reason);
  }

  /** A visitor that has closed gets its own Close as the answer. */
  #fail(code: number, reason: string, error: ErrorCode = "origin_failed"): void {
    if (!this.#visitorClose) this.#deps.findRecording()?.fail(error);
    this.#end(this.#visitorClose ?? { code, reason });
  }

  #end({ code, reason }: SocketClose): void {
    this.#isEnded = true;
    clearTimeout(this.#answerTimer);
    this.#closing = undefined;
    this.#toAgent.clear();
    this.#toVisitor.clear();
    this.#parts = undefined;
    for (const { rest } of this.#backlog) freeBytes(rest);
    this.#backlog = [];
    this.#backlogBytes = 0;
    this.#pacedBytes = 0;
    this.#stopStallTimer();
    // Until the visitor has closed too, the platform holds what it has queued.
    this.#deps.memory.record(this, this.#sendQueue.heldBytes);
    this.#sendQueue.stop();
    this.#deps.findRecording()?.complete();
    try {
      if (code === 1005) this.#socket.close();
      else this.#socket.close(code, reason);
    } catch {
      // Closed already, or a code that the platform does not send.
      closeQuietly(this.#socket, 1000);
    }
    if (this.#visitorClose) this.#release();
  }

  #release(): void {
    this.#sendQueue.stop();
    this.#unreadBytes = 0;
    this.#deps.memory.record(this, 0);
    this.#deps.onDone();
  }
}

function toMessageKind(type: number): "text" | "binary" {
  return type === FRAME.text ? "text" : "binary";
}
