/** Sends frames on a WebSocket, several in a message. */
import WebSocket from "ws";
import { WIRE_MESSAGE_MAX_BYTES } from "../../protocol/limits.ts";
import { FrameWriter } from "../../protocol/wire/frames.ts";
import { collectAfterTransfer } from "./garbage-collection.ts";

/** Under load frames are collected for this long before they are sent as one message. */
const BATCH_MS = 1;
/**
 * Small messages that may be sent without that delay, and how many more with each millisecond. A local server can write single
 * bytes, which would make a message each.
 */
const PROMPT_MESSAGES_MAX = 32;
const PROMPT_MESSAGES_PER_MS = 1;
const SMALL_MESSAGE_MAX_BYTES = 4 * 1024;
/** Frames of this size together are sent at once, so that a message stays well below its maximum size. */
const FLUSH_AT_BYTES = WIRE_MESSAGE_MAX_BYTES / 4;
/**
 * The bytes that may wait for the socket before streams have to. Enough to keep it busy, and few: whatever another stream
 * sends next, such as a short response beside long downloads, waits for all of them on the agent's uplink.
 */
const BACKLOG_MAX_BYTES = 2 * FLUSH_AT_BYTES;

/** How much the connection carries: with "heavy", the frames of one millisecond share a message. */
type Load = "light" | "heavy";

interface BacklogEvents {
  /** More bytes wait for the socket than should. */
  onFull(): void;
  /** Fewer do, after some were sent. */
  onSpace(): void;
}

export class FrameSender {
  readonly #socket: WebSocket;
  readonly #events: BacklogEvents | undefined;
  readonly #writer = new FrameWriter();
  #isFlushScheduled = false;
  #flushedAtMs = 0;
  #promptMessages = PROMPT_MESSAGES_MAX;

  constructor(socket: WebSocket, events?: BacklogEvents) {
    this.#socket = socket;
    this.#events = events;
  }

  /**
   * Frames share messages, because each message is an event for the tunnel's object, and events are its bottleneck. Frames of
   * one turn of the event loop always share one.
   */
  send(write: (writer: FrameWriter) => void, load: Load): void {
    write(this.#writer);
    if (this.#writer.length >= FLUSH_AT_BYTES) return this.flush();
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    const isBusy = load === "heavy" || this.#promptMessages < 1;
    if (isBusy && performance.now() - this.#flushedAtMs < BATCH_MS)
      setTimeout(() => this.flush(), BATCH_MS);
    else setImmediate(() => this.flush());
  }

  /** Sends the collected frames now. */
  flush(): void {
    this.#isFlushScheduled = false;
    if (this.#writer.length === 0) return;
    const message = this.#writer.take();
    this.#recordFlush(message.byteLength);
    collectAfterTransfer(message.byteLength);
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(message, () => {
      this.#writer.recycle(message);
      if (this.#socket.bufferedAmount < BACKLOG_MAX_BYTES) this.#events?.onSpace();
    });
    if (this.#socket.bufferedAmount >= BACKLOG_MAX_BYTES) this.#events?.onFull();
  }

  #recordFlush(bytes: number): void {
    const nowMs = performance.now();
    const earned = (nowMs - this.#flushedAtMs) * PROMPT_MESSAGES_PER_MS;
    const used = bytes > SMALL_MESSAGE_MAX_BYTES ? 0 : 1;
    this.#promptMessages = Math.max(
      0,
      Math.min(PROMPT_MESSAGES_MAX, this.#promptMessages + earned) - used,
    );
    this.#flushedAtMs = nowMs;
  }
}
