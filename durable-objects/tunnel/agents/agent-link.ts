/**
 * One agent's connection as the tunnel sees it while it is awake: what is written to it, its windows, and
 * the streams that run over it. Built anew from the socket's attachment after hibernation, when no stream
 * but visitors' idle WebSockets can exist.
 */
import { CLOSE, type CloseName } from "../../../protocol/wire/close-codes.ts";
import { SendWindows } from "../../../protocol/wire/flow.ts";
import {
  parseCodeAndText,
  parseCredit,
  FRAME,
  FrameWriter,
  readFrames,
  type Frame,
  type ResetCode,
} from "../../../protocol/wire/frames.ts";
import {
  CLOSE_REASON_MAX_BYTES,
  HEARTBEAT_TIMEOUT_MS,
  WIRE_MESSAGE_MAX_BYTES,
} from "../../../protocol/limits.ts";
import type { AgentAttachment } from "./admission.ts";
import { Pacer } from "../proxy/pacer.ts";

/** One exchange's end of a stream. The link calls these; none may throw. */
export interface Stream {
  /** A frame other than credit and reset. @returns false when it has no meaning here. */
  onFrame(frame: Frame): boolean;
  /** The agent granted bytes of it. */
  onCredit?(): void;
  /** The agent gave the stream up. */
  onReset(code: number, reason: string): void;
  /** The connection is gone. */
  onConnectionLost(): void;
}

/** With fewer in flight, nothing is gained by waiting for more. */
const BUSY_STREAMS = 8;

export class AgentLink {
  readonly attachment: AgentAttachment;
  readonly windows: SendWindows;
  /** The rate that the agent's token grants, each way. */
  readonly pace: { toAgent: Pacer; toVisitors: Pacer };
  readonly #socket: WebSocket;
  readonly #streams = new Map<number, Stream>();
  readonly #writer = new FrameWriter();
  // Random, so that a late frame of a stream from before a hibernation finds nobody.
  #nextStream = crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1;
  #isFlushScheduled = false;
  /** What waits for the end of the message that is being read. */
  #afterMessage: (() => void)[] = [];
  #lastReceivedAtMs: number;
  isGoingAway = false;

  constructor(socket: WebSocket, attachment: AgentAttachment, heardAtMs: number) {
    this.#socket = socket;
    this.attachment = attachment;
    this.#lastReceivedAtMs = heardAtMs;
    const { streamWindow, connectionWindow } = attachment.hello ?? {
      streamWindow: 0,
      connectionWindow: 0,
    };
    this.windows = new SendWindows(streamWindow, connectionWindow);
    const { bandwidthLimitMbps } = attachment;
    this.pace = {
      toAgent: new Pacer(bandwidthLimitMbps),
      toVisitors: new Pacer(bandwidthLimitMbps),
    };
  }

  get socket(): WebSocket {
    return this.#socket;
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  /** @param automaticPongAtMs when the platform last answered the agent's heartbeat on our behalf. */
  isSilent(nowMs: number, automaticPongAtMs: () => number): boolean {
    if (nowMs - this.#lastReceivedAtMs <= HEARTBEAT_TIMEOUT_MS) return false;
    this.#lastReceivedAtMs = Math.max(this.#lastReceivedAtMs, automaticPongAtMs());
    return nowMs - this.#lastReceivedAtMs > HEARTBEAT_TIMEOUT_MS;
  }

  // ── Streams ──

  open(stream: Stream): number {
    do this.#nextStream = (this.#nextStream + 1) >>> 0;
    while (this.#nextStream === 0 || this.#streams.has(this.#nextStream));
    this.#streams.set(this.#nextStream, stream);
    return this.#nextStream;
  }

  /** Puts a visitor's or a client's WebSocket back in its place after hibernation. */
  resume(id: number, stream: Stream): void {
    this.#streams.set(id, stream);
  }

  /** The stream ended on both sides. */
  finish(id: number): void {
    this.#streams.delete(id);
  }

  /** Ends the stream before its time and tells the agent. */
  reset(id: number, code: ResetCode, reason: string): void {
    if (!this.#streams.delete(id)) return;
    this.windows.drop(id);
    this.send((writer) => writer.writeCodeAndText(FRAME.reset, id, code, reason));
  }

  // ── Writing ──

  /**
   * Frames share messages: those of one turn always, and under load those of all events that are due,
   * because each message costs a system call here and an event there.
   */
  send(write: (writer: FrameWriter) => void): void {
    write(this.#writer);
    if (this.#writer.length >= WIRE_MESSAGE_MAX_BYTES / 4) return this.#flush();
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    if (this.#streams.size > BUSY_STREAMS) setTimeout(() => this.#flush(), 0);
    else queueMicrotask(() => this.#flush());
  }

  close(name: CloseName, explanation: string): void {
    this.#flush();
    const reason = `${name}: ${explanation}`.slice(0, CLOSE_REASON_MAX_BYTES);
    try {
      this.#socket.close(CLOSE[name], reason);
    } catch {
      // Closed from the other side in the meantime, which is what was wanted.
    }
    this.loseStreams();
  }

  #flush(): void {
    this.#isFlushScheduled = false;
    if (this.#writer.length === 0) return;
    const message = this.#writer.take();
    try {
      this.#socket.send(message); // Copies.
      this.#writer.recycle(message);
    } catch {
      // The socket closed; its close event tells every stream.
    }
  }

  // ── Reading ──

  /** @returns false when the agent sent what it must not. */
  receive(message: ArrayBuffer): boolean {
    this.#lastReceivedAtMs = Date.now();
    if (message.byteLength > WIRE_MESSAGE_MAX_BYTES) return false;
    let understood = true;
    const whole = readFrames(new Uint8Array(message), (frame) => {
      understood &&= this.#deliver(frame);
    });
    const waiting = this.#afterMessage;
    this.#afterMessage = [];
    for (const act of waiting) act();
    return whole && understood;
  }

  /** For a stream that is given a frame: runs when all frames of the same message are delivered. */
  afterMessage(act: () => void): void {
    this.#afterMessage.push(act);
  }

  /** Frames of a stream that is over here were on their way when it ended; they are dropped. */
  #deliver(frame: Frame): boolean {
    if (frame.type === FRAME.credit) {
      const bytes = parseCredit(frame.payload);
      if (bytes === null || !this.windows.addCredit(frame.stream, bytes)) return false;
      this.#streams.get(frame.stream)?.onCredit?.();
      return true;
    }
    if (frame.type === FRAME.goingAway) {
      this.isGoingAway = true;
      return true;
    }
    const stream = this.#streams.get(frame.stream);
    if (frame.type === FRAME.reset) {
      const reset = parseCodeAndText(frame.payload);
      if (!reset) return false;
      if (stream) {
        this.#streams.delete(frame.stream);
        // In this order: dropping wakes a sender that waits, which must know by then that it is over.
        stream.onReset(reset.code, reset.text);
        this.windows.drop(frame.stream);
      }
      return true;
    }
    return stream ? stream.onFrame(frame) : frame.type >= FRAME.response && frame.type <= FRAME.close;
  }

  /** The connection is gone, by a close of either side: everybody who depends on it is told, once. */
  loseStreams(): void {
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.onConnectionLost();
    this.windows.close();
  }
}
