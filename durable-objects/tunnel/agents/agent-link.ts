/**
 * One agent's connection while the object is awake: its writer, its windows and its streams. After hibernation it
 * is rebuilt from the socket's attachment; only streams of visitors' idle WebSockets and of clients can exist
 * then, and those resume themselves.
 */
import { CLOSE, type CloseName } from "../../../protocol/wire/close-codes.ts";
import { formatCloseReason } from "../../../protocol/wire/close-reason.ts";
import { SendWindows } from "../../../protocol/wire/flow-control.ts";
import {
  AgentHealth,
  parseCodeAndText,
  parseCredit,
  FLAG,
  parseJsonPayload,
  FRAME,
  type Frame,
  type FrameWriter,
  type ResetCode,
  type StatusUpdate,
} from "../../../protocol/wire/frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  STREAM_WINDOW_BYTES,
  WIRE_MESSAGE_MAX_BYTES,
} from "../../../protocol/limits.ts";
import { closeQuietly } from "../../websockets.ts";
import type { BufferedBytes } from "../buffered-bytes.ts";
import { FrameReceiver } from "../frame-receiver.ts";
import { FrameSender } from "../frame-sender.ts";
import type { RequestHead } from "../proxy/heads.ts";
import type { AgentAttachment } from "../socket-attachments.ts";
import type { Pacer } from "../proxy/pacer.ts";
import { isEmptyPart, StrayFrames } from "../stray-frames.ts";

/** The tunnel's end of a stream. The link calls these methods; none may throw. */
export interface Stream {
  /** Receives a frame other than credit and reset. @returns false when the frame is not valid here. */
  onFrame(frame: Frame): boolean;
  /** The agent granted bytes of this stream. */
  onCredit?(): void;
  /** The agent ended the stream early. */
  onReset(code: number, reason: string): void;
  /** The agent's connection closed. */
  onConnectionLost(): void;
}

/** A change of the agent's state counts as many stray frames, because it costs as much. */
export const STATE_FRAME_COST = 500;

/** Frames that may always wait to be read: an agent can send as many at once without violating the protocol. */
const WAITING_RESERVE_BYTES = 2 * WIRE_MESSAGE_MAX_BYTES;

/** With fewer streams, waiting for more frames gains nothing. */
const BUSY_STREAMS = 8;

/** The rate that the agents' token grants, each way. */
interface Pace {
  toAgent: Pacer;
  toVisitors: Pacer;
}

interface AgentLinkOptions {
  buffered: BufferedBytes;
  pace: Pace;
  onViolation: () => void;
  onOverload: () => void;
}

export class AgentLink {
  readonly windows: SendWindows;
  readonly buffered: BufferedBytes;
  readonly pace: Pace;
  readonly socket: WebSocket;
  isGoingAway = false;
  /** Choices among the agents of a pool are numbered: the latest one that selected this agent; 0: none. */
  lastChoice = 0;
  readonly #streams = new Map<number, Stream>();
  readonly #sender: FrameSender;
  // Random, so that a late frame of a stream from before a hibernation matches no current stream.
  #nextStream = crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1;
  readonly #receiver: FrameReceiver;
  readonly #onViolation: () => void;
  readonly #onOverload: () => void;
  /** Callbacks that run after the frames that arrived together are read. */
  #afterMessage: (() => void)[] = [];
  #lastReceivedAtMs: number;
  /** Frames that no stream takes, and the agent's own state. */
  readonly #stray = new StrayFrames();
  /** What the agent may still send for streams that this side has ended: at most the window of each. */
  #endedBytes = 0;
  #attachment: AgentAttachment;

  /**
   * @param options.pace of the tunnel: agents of a pool share it.
   * @param options.onViolation called when the agent has violated the protocol, to disconnect it.
   * @param options.onOverload called when the agent sends more than can wait here or be ignored, to disconnect it: an agent that
   * follows the protocol can do so too.
   */
  constructor(
    socket: WebSocket,
    attachment: AgentAttachment,
    lastReceivedAtMs: number,
    { buffered, pace, onViolation, onOverload }: AgentLinkOptions,
  ) {
    this.socket = socket;
    this.#sender = new FrameSender(socket);
    this.#attachment = attachment;
    this.buffered = buffered;
    this.pace = pace;
    this.#lastReceivedAtMs = lastReceivedAtMs;
    this.#receiver = new FrameReceiver({
      buffered,
      reserveBytes: WAITING_RESERVE_BYTES,
      onFrame: (frame) => this.#deliver(frame),
      onHandled: () => this.#runAfterMessage(),
      onViolation,
      onOverload,
    });
    this.#onViolation = onViolation;
    this.#onOverload = onOverload;
    const { streamWindow, connectionWindow } = attachment.hello ?? {
      streamWindow: 0,
      connectionWindow: 0,
    };
    // The platform queues what the agent does not read, so an agent can't have larger windows than this service's own.
    this.windows = new SendWindows(
      Math.min(streamWindow, STREAM_WINDOW_BYTES),
      Math.min(connectionWindow, CONNECTION_WINDOW_BYTES),
      (bytes) => buffered.add(bytes),
    );
  }

  get attachment(): AgentAttachment {
    return this.#attachment;
  }

  /** undefined: the agent serves alone. */
  get pool(): NonNullable<AgentAttachment["hello"]>["pool"] {
    return this.#attachment.hello?.pool;
  }

  /** Whether the agent's local server accepts connections, as far as the agent has reported. */
  get isHealthy(): boolean {
    return this.pool?.healthy ?? true;
  }

  /** How many requests and WebSockets are in flight. */
  get streamCount(): number {
    return this.#streams.size;
  }

  /** The agent has a connection to each of the tunnel's objects, which share the rate. */
  setShardCount(count: number): void {
    const mbps = this.attachment.bandwidthLimitMbps / count;
    this.pace.toAgent.setRate(mbps);
    this.pace.toVisitors.setRate(mbps);
  }

  /**
   * Whether nothing has been received for longer than `maxMs`.
   * @param automaticPongAtMs when the platform last answered the agent's heartbeat for the object.
   */
  isSilent(nowMs: number, maxMs: number, automaticPongAtMs: () => number): boolean {
    // Later times are from before the clock was set back.
    if (this.#lastReceivedAtMs > nowMs) this.#lastReceivedAtMs = nowMs;
    if (nowMs - this.#lastReceivedAtMs <= maxMs) return false;
    const pongAtMs = automaticPongAtMs();
    if (pongAtMs <= nowMs) this.#lastReceivedAtMs = Math.max(this.#lastReceivedAtMs, pongAtMs);
    return nowMs - this.#lastReceivedAtMs > maxMs;
  }

  // ── Streams ──

  open(stream: Stream): number {
    do this.#nextStream = (this.#nextStream + 1) >>> 0;
    while (this.#nextStream === 0 || this.#streams.has(this.#nextStream));
    this.#streams.set(this.#nextStream, stream);
    return this.#nextStream;
  }

  /** Attaches the stream of a visitor's or a client's WebSocket again, after hibernation. */
  resume(id: number, stream: Stream): void {
    this.#streams.set(id, stream);
  }

  /** The stream has ended on both sides. */
  finish(id: number): void {
    this.#streams.delete(id);
    this.#freeLargeBuffers();
  }

  /** Ends the stream early, and notifies the agent. */
  reset(id: number, code: ResetCode, reason: string): void {
    if (!this.abandon(id)) return;
    this.send((writer) => writer.writeCodeAndText(FRAME.reset, id, code, reason));
  }

  /**
   * Ends the stream on this side only. What the agent sends on it until it knows is dropped.
   * @returns false when it has ended already.
   */
  abandon(id: number): boolean {
    if (!this.#streams.delete(id)) return false;
    this.#endedBytes += STREAM_WINDOW_BYTES;
    this.windows.drop(id);
    this.#freeLargeBuffers();
    return true;
  }

  /** A busy link uses them again; for others, each large head would leave half a megabyte in memory. */
  #freeLargeBuffers(): void {
    if (this.#streams.size <= BUSY_STREAMS) this.#sender.freeLargeBuffers();
  }

  // ── Writing ──

  send(write: (writer: FrameWriter) => void): void {
    this.#sender.send(write, this.#streams.size > BUSY_STREAMS ? "heavy" : "light");
  }

  /** @param stream from `open`. @param requestId the one that the visitor gets: earlier agents don't read it. */
  sendRequest(stream: number, { parts, flags }: RequestHead, requestId: string): void {
    const readsId = this.attachment.hello?.readsRequestIds === true;
    const [payload, sentFlags] = readsId
      ? [[...parts, requestId], flags | FLAG.id]
      : [parts, flags];
    this.send((writer) => writer.writeJson(FRAME.request, sentFlags, stream, payload));
  }

  /** Sends the state of the tunnel that the agent shows to its user. */
  sendStatus(status: StatusUpdate): void {
    if (!this.#attachment.hello?.readsStatus) return;
    this.send((writer) => writer.writeJson(FRAME.status, 0, 0, status));
  }

  close(name: CloseName, explanation: string): void {
    this.#sender.flush();
    // Its Close needs no report: the caller reports the end of the connection.
    this.socket.serializeAttachment({ ...this.#attachment, hello: null });
    // The agent may have closed the connection already.
    closeQuietly(this.socket, CLOSE[name], formatCloseReason(name, explanation));
    this.failStreams();
  }

  // ── Reading ──

  receive(message: ArrayBuffer): void {
    this.#lastReceivedAtMs = Date.now();
    if (message.byteLength > WIRE_MESSAGE_MAX_BYTES) return this.#onViolation();
    this.#receiver.receive(message);
  }

  /** Runs a callback when everything that the agent has sent is handled. */
  whenRead(run: () => void): void {
    this.#receiver.whenRead(run);
  }

  /** For a stream that receives a frame: runs a callback after all frames of the same message that are handled in the same turn. */
  afterMessage(run: () => void): void {
    this.#afterMessage.push(run);
  }

  #runAfterMessage(): void {
    const callbacks = this.#afterMessage;
    this.#afterMessage = [];
    for (const run of callbacks) run();
  }

  /**
   * Frames of an unknown stream were in flight when it ended; they are dropped, up to a bound.
   * @returns false when the frame violates the protocol.
   */
  #deliver(frame: Frame): boolean {
    if (frame.type === FRAME.credit) {
      const bytes = parseCredit(frame.payload);
      if (bytes === null) return false;
      if (bytes === 0 || this.windows.outstanding(frame.stream) === 0) return this.#countStray();
      if (!this.windows.addCredit(frame.stream, bytes)) return false;
      this.#streams.get(frame.stream)?.onCredit?.();
      return true;
    }
    if (frame.type === FRAME.goingAway) {
      this.#onGoingAway();
      return this.#countStray(STATE_FRAME_COST);
    }
    if (frame.type === FRAME.health) return this.#receiveHealth(frame);
    const stream = this.#streams.get(frame.stream);
    if (frame.type === FRAME.reset) {
      const reset = parseCodeAndText(frame.payload);
      if (!reset) return false;
      if (!stream) return this.#countStray();
      this.#streams.delete(frame.stream);
      // In this order: dropping the window wakes a waiting sender, which must see that the stream has ended.
      stream.onReset(reset.code, reset.text);
      this.windows.drop(frame.stream);
      this.#freeLargeBuffers();
      return true;
    }
    if (stream && isEmptyPart(frame)) return this.#countStray();
    if (stream) return stream.onFrame(frame);
    return frame.type >= FRAME.response && frame.type <= FRAME.close && this.#drop(frame);
  }

  /** A frame of an unknown stream. */
  #drop({ payload: { byteLength } }: Frame): true {
    if (byteLength === 0 || byteLength > this.#endedBytes) return this.#countStray();
    this.#endedBytes -= byteLength;
    return true;
  }

  #countStray(cost = 1): true {
    if (!this.#stray.count(this.#lastReceivedAtMs, cost)) this.#onOverload();
    return true;
  }

  /** An agent of a pool waits for this answer, behind which no request is on its way to it, before it closes. */
  #onGoingAway(): void {
    this.isGoingAway = true;
    if (this.pool) this.sendStatus({ drained: true });
  }

  /** @returns false when the agent is not in a pool, or the frame is unreadable. */
  #receiveHealth(frame: Frame): boolean {
    const { hello } = this.#attachment;
    const health = AgentHealth.safeParse(parseJsonPayload(frame.payload)).data;
    if (!hello?.pool || !health) return false;
    const pool = { ...hello.pool, healthy: health.healthy };
    this.#attachment = { ...this.#attachment, hello: { ...hello, pool } };
    this.socket.serializeAttachment(this.#attachment);
    return this.#countStray(STATE_FRAME_COST);
  }

  /** The connection has closed, from either side: ends all streams, once. */
  failStreams(): void {
    this.#receiver.close();
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.onConnectionLost();
    this.windows.close();
  }
}
