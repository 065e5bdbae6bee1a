/**
 * One TCP connection between a client of `underpass connect` and the local server behind an agent: the client's
 * WebSocket on one side, a stream of the agent's connection on the other (docs/protocols/agent-protocol.md, "A client's
 * connection").
 *
 * The client gets credit for bytes that were forwarded to the agent, so that this object holds at most the client's
 * window. The agent gets credit for bytes only when the client has given credit for them, because this object also
 * holds the bytes that the platform queues for a slow socket. State that survives an event is in `SavedStream`.
 */
import {
  CLIENT_STREAM,
  parseCodeAndText,
  parseCredit,
  FLAG,
  FRAME,
  RESET,
  type Frame,
  type FrameWriter,
  type ResetCode,
} from "../../../protocol/wire/frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  CREDIT_GRANT_BYTES,
  HEARTBEAT_INTERVAL_MS,
  STREAM_RESERVE_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import type { SavedStream } from "../socket-attachments.ts";
import { isEmptyPart, StrayFrames } from "../stray-frames.ts";
import type { AgentLink, Stream } from "../agents/agent-link.ts";
import type { Usage } from "../metrics/usage.ts";
import type { ClientSocket } from "./client-socket.ts";
import { FrameReceiver } from "../frame-receiver.ts";
import { PacedBytes } from "./paced-bytes.ts";

const INVALID_MESSAGE = "the message exceeds the window or contains an invalid frame";
const TOO_MUCH_WAITS = "more messages of the client wait than the tunnel can hold";

/** The use of the agent's connection window: the bytes that all streams hold beyond their reserves. */
export interface SharedWindow {
  bytes: number;
}

export interface ClientStreamDeps {
  link: AgentLink;
  socket: ClientSocket;
  /** How many bytes the client may send beyond its credit. */
  window: number;
  usage: Usage;
  shared: SharedWindow;
  /** Stores the state for the next event. null: the stream has ended. */
  save: (stream: SavedStream | null) => void;
}

export class ClientStream implements Stream {
  readonly #deps: ClientStreamDeps;
  readonly #state: SavedStream;
  readonly #toAgent: PacedBytes;
  readonly #toClient: PacedBytes;
  readonly #receiver: FrameReceiver;
  #lastReceivedAtMs = 0;
  /** Frames of the client without bytes. */
  readonly #stray = new StrayFrames();
  #awakeTimer: ReturnType<typeof setTimeout> | undefined;
  #isSaving = false;
  #hasEnded = false;

  /** @param saved the state of a stream that resumes after hibernation; without it a new stream is opened. */
  constructor(deps: ClientStreamDeps, saved?: SavedStream) {
    this.#deps = deps;
    const { link, shared } = deps;
    const { agentId } = link.attachment;
    this.#state = saved ?? { ...NEW, agentId, id: link.open(this) };
    const { id, hasClientEnded, hasAgentEnded } = this.#state;
    this.#toAgent = new PacedBytes(
      link.pace.toAgent,
      {
        available: () => link.windows.available(id),
        onBlocked: (resume) => this.#awaitWindow(resume),
        send: (bytes, isLast) => this.#sendToAgent(bytes, isLast),
      },
      { hasEnded: hasClientEnded },
    );
    this.#toClient = new PacedBytes(
      link.pace.toVisitors,
      {
        // The client's window is as large as the one that the agent respects.
        available: () => Infinity,
        onBlocked: () => undefined,
        send: (bytes, isLast) => this.#sendToClient(bytes, isLast),
      },
      { hasEnded: hasAgentEnded },
    );
    this.#receiver = new FrameReceiver({
      buffered: link.buffered,
      reserveBytes: 0,
      onFrame: (frame) => this.#receiveFrame(frame),
      onViolation: () => this.fail(RESET.protocolError, INVALID_MESSAGE),
      onOverload: () => this.fail(RESET.protocolError, TOO_MUCH_WAITS),
    });
    if (!saved) {
      this.#save();
      return;
    }
    link.windows.recordSent(id, saved.toAgent);
    if (hasClientEnded) link.windows.end(id);
    if (!this.#isComplete) link.resume(id, this);
    shared.bytes += beyondReserve(this.#outstanding);
  }

  get id(): number {
    return this.#state.id;
  }

  // ── Called by the client's WebSocket ──

  /** @param message of at most `WIRE_MESSAGE_MAX_BYTES`. */
  receive(message: ArrayBuffer): void {
    this.#lastReceivedAtMs = Date.now();
    this.#receiver.receive(message);
  }

  /** @returns false when the client violated the protocol. */
  #receiveFrame(frame: Frame): boolean {
    if (frame.stream !== CLIENT_STREAM) return false;
    if (isEmptyPart(frame)) return this.#stray.count(this.#lastReceivedAtMs);
    switch (frame.type) {
      case FRAME.data:
        return this.#receiveData(frame);
      case FRAME.credit:
        return this.#receiveCredit(parseCredit(frame.payload));
      case FRAME.reset:
        this.#resetAgent(RESET.canceled, parseCodeAndText(frame.payload)?.text ?? "");
        this.#deps.socket.close();
        return true;
      default:
        return false;
    }
  }

  /** The client closed its socket. A stream that has not ended in both directions is reset. */
  onClientClosed(): void {
    this.#receiver.whenRead(() => this.#endClient());
  }

  #endClient(): void {
    if (this.#hasEnded) return;
    if (!this.#isComplete) return this.#resetAgent(RESET.canceled, "the client disconnected");
    // The agent counts these bytes until it receives credit for them, except those within the reserve.
    const { link } = this.#deps;
    const bytes = this.#outstanding;
    if (bytes > STREAM_RESERVE_BYTES)
      link.send((writer) => writer.writeCredit(this.#state.id, bytes));
    this.#finish();
  }

  /** Resets the stream on both sides. */
  fail(code: ResetCode, reason: string): void {
    if (this.#hasEnded) return;
    this.#deps.socket.reset(code, reason);
    this.#resetAgent(code, reason);
  }

  // ── Called by the link ──

  onFrame(frame: Frame): boolean {
    if (frame.type !== FRAME.data || this.#state.hasAgentEnded) return false;
    const bytes = frame.payload.byteLength;
    if (this.#outstanding + bytes > STREAM_WINDOW_BYTES) return false;
    const { shared, usage } = this.#deps;
    shared.bytes += beyondReserve(this.#outstanding + bytes) - beyondReserve(this.#outstanding);
    const isLast = (frame.flags & FLAG.end) !== 0;
    this.#state.hasAgentEnded = isLast;
    usage.countOut(bytes);
    this.#toClient.push(frame.payload, isLast);
    this.#saveSoon();
    return shared.bytes <= CONNECTION_WINDOW_BYTES;
  }

  onCredit(): void {
    this.#saveSoon();
  }

  onReset(code: number, reason: string): void {
    this.#deps.socket.reset(code as ResetCode, reason);
    this.#finish();
  }

  onConnectionLost(): void {
    this.#deps.socket.reset(RESET.agentOffline, "the tunnel's agent disconnected");
    this.#finish();
  }

  // ── Inside: from the client to the agent ──

  #receiveData({ flags, payload }: Frame): boolean {
    const { window, usage } = this.#deps;
    const held = this.#toAgent.length + this.#state.clientUngranted;
    if (this.#state.hasClientEnded || held + payload.byteLength > window) return false;
    const isLast = (flags & FLAG.end) !== 0;
    this.#state.hasClientEnded = isLast;
    usage.countIn(payload.byteLength);
    this.#toAgent.push(payload, isLast);
    this.#saveSoon();
    return true;
  }

  #sendToAgent(bytes: Uint8Array, isLast: boolean): void {
    const { link, socket, window } = this.#deps;
    const { id } = this.#state;
    link.windows.recordSent(id, bytes.byteLength);
    link.send((writer) => writePart(writer, id, bytes, isLast));
    this.#state.clientUngranted += bytes.byteLength;
    const uncredited = this.#state.clientUngranted;
    if (uncredited >= Math.min(CREDIT_GRANT_BYTES, window / 4)) {
      this.#state.clientUngranted = 0;
      socket.send((writer) => writer.writeCredit(CLIENT_STREAM, uncredited));
    }
    if (isLast) link.windows.end(id);
    if (isLast && this.#isComplete) link.finish(id);
    this.#saveSoon();
  }

  /** A pending timer prevents hibernation, which would lose the held bytes. */
  #awaitWindow(resume: () => void): void {
    const { link } = this.#deps;
    const stayAwake = () => {
      this.#awakeTimer = setTimeout(stayAwake, HEARTBEAT_INTERVAL_MS);
    };
    if (this.#awakeTimer === undefined) stayAwake();
    link.windows.whenAvailable(this.#state.id, () => {
      this.#stopAwakeTimer();
      resume();
    });
  }

  #stopAwakeTimer(): void {
    if (this.#awakeTimer !== undefined) clearTimeout(this.#awakeTimer);
    this.#awakeTimer = undefined;
  }

  // ── Inside: from the agent to the client ──

  #sendToClient(bytes: Uint8Array, isLast: boolean): void {
    const { link, socket } = this.#deps;
    this.#state.toClient += bytes.byteLength;
    socket.send((writer) => writePart(writer, CLIENT_STREAM, bytes, isLast));
    if (isLast && this.#isComplete) link.finish(this.#state.id);
    this.#saveSoon();
  }

  #receiveCredit(bytes: number | null): boolean {
    const state = this.#state;
    if (bytes === null || bytes > state.toClient) return false;
    if (bytes === 0) return this.#stray.count(this.#lastReceivedAtMs);
    state.toClient -= bytes;
    state.agentUngranted += bytes;
    const isLastGrant = state.hasAgentEnded && state.toClient === 0 && this.#toClient.length === 0;
    if (isLastGrant || state.agentUngranted >= CREDIT_GRANT_BYTES) this.#grantAgent();
    this.#saveSoon();
    return true;
  }

  #grantAgent(): void {
    const { link, shared } = this.#deps;
    const before = this.#outstanding;
    const bytes = this.#state.agentUngranted;
    this.#state.agentUngranted = 0;
    shared.bytes += beyondReserve(this.#outstanding) - beyondReserve(before);
    if (bytes > 0) link.send((writer) => writer.writeCredit(this.#state.id, bytes));
  }

  // ── Inside: both directions ──

  /** The bytes from the agent for which it has received no credit yet. */
  get #outstanding(): number {
    const { toClient, agentUngranted } = this.#state;
    return this.#toClient.length + toClient + agentUngranted;
  }

  /** All bytes of both directions were forwarded; the client may not have consumed them yet. */
  get #isComplete(): boolean {
    const { hasClientEnded, hasAgentEnded } = this.#state;
    return (
      hasClientEnded && hasAgentEnded && this.#toAgent.length === 0 && this.#toClient.length === 0
    );
  }

  #resetAgent(code: ResetCode, reason: string): void {
    const { link } = this.#deps;
    this.#finish();
    link.reset(this.#state.id, code, reason);
  }

  #finish(): void {
    if (this.#hasEnded) return;
    this.#deps.shared.bytes -= beyondReserve(this.#outstanding);
    this.#hasEnded = true;
    this.#receiver.close();
    this.#toAgent.clear();
    this.#toClient.clear();
    this.#stopAwakeTimer();
    this.#deps.save(null);
  }

  #saveSoon(): void {
    if (this.#isSaving || this.#hasEnded) return;
    this.#isSaving = true;
    queueMicrotask(() => {
      this.#isSaving = false;
      if (!this.#hasEnded) this.#save();
    });
  }

  #save(): void {
    const { link, save } = this.#deps;
    save({ ...this.#state, toAgent: link.windows.outstanding(this.#state.id) });
  }
}

const NEW: Omit<SavedStream, "agentId" | "id"> = {
  toAgent: 0,
  clientUngranted: 0,
  toClient: 0,
  agentUngranted: 0,
  hasClientEnded: false,
  hasAgentEnded: false,
};

function writePart(writer: FrameWriter, stream: number, bytes: Uint8Array, isLast: boolean): void {
  if (isLast) writer.writeBytes(FRAME.data, FLAG.end, stream, bytes);
  else writer.writeData(stream, bytes);
}

function beyondReserve(bytes: number): number {
  return Math.max(0, bytes - STREAM_RESERVE_BYTES);
}
