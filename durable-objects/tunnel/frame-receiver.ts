/**
 * Reads the frames that an agent or a client sends on its WebSocket, a bounded number in each turn of the event loop. A message can
 * have a hundred thousand frames, and to handle one can take tens of microseconds. All tunnels of a self-hosted server share a thread,
 * which looks for the input of other connections only when it has nothing left to do.
 */
import { MESSAGE_OVERHEAD_BYTES } from "../../protocol/limits.ts";
import type { Frame } from "../../protocol/wire/frames.ts";
import { MessageReader } from "../../protocol/wire/read-frames.ts";
import type { BufferedBytes } from "./buffered-bytes.ts";

/** Frames of one connection, in one message or in several, after which other connections have their turn. */
export const FRAMES_PER_TURN_MAX = 128;
/**
 * When the next frames are handled. The timer fires after all connections were looked at for input. workerd's clock does not pass a
 * timer that is due: with 0 ms, each timer would be due at the time of the one before, and the clock of the object would stand still
 * while frames wait, so that no token would expire.
 */
const TURN_MS = 1;

interface FrameReceiverOptions {
  buffered: BufferedBytes;
  /** As much may wait even when the tunnel may buffer nothing more. */
  reserveBytes: number;
  /** @returns false when the frame violates the protocol. */
  onFrame(frame: Frame): boolean;
  /** The frames of a message, or those of a turn, were handled. */
  onHandled?(): void;
  /** The message is invalid. Nothing more is read. */
  onViolation(): void;
  /** More wait than may. Nothing more is read. */
  onOverload(): void;
}

export class FrameReceiver {
  readonly #options: FrameReceiverOptions;
  /** The messages that wait, or of which frames wait. */
  #waiting: MessageReader[] = [];
  #waitingBytes = 0;
  /** Since the last turn of the others. */
  #frames = 0;
  /** Set while the others have their turn. A pending timer also prevents hibernation, which would lose what waits. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  #onRead: (() => void) | undefined;
  #isClosed = false;

  constructor(options: FrameReceiverOptions) {
    this.#options = options;
  }

  receive(message: ArrayBuffer): void {
    if (this.#isClosed) return;
    const reader = new MessageReader(new Uint8Array(message));
    if (this.#timer === undefined) this.#read(reader);
    if (reader.isAtEnd || this.#isClosed) return;
    this.#waiting.push(reader);
    this.#count(reader.byteLength + MESSAGE_OVERHEAD_BYTES);
    const { buffered, reserveBytes } = this.#options;
    if (this.#waitingBytes > reserveBytes && buffered.isFull) this.#fail("onOverload");
  }

  /** Runs a callback once, when all messages that have arrived are read: now, if none wait. */
  whenRead(run: () => void): void {
    if (this.#waiting.length === 0) run();
    else this.#onRead = run;
  }

  /** Drops what waits. Nothing more is read. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#waiting = [];
    this.#count(-this.#waitingBytes);
  }

  /** Handles frames of the message until it ends, or the others have their turn. */
  #read(reader: MessageReader): void {
    while (!reader.isAtEnd && this.#timer === undefined && !this.#isClosed) {
      const frame = reader.read();
      if (!frame || !this.#options.onFrame(frame)) {
        this.#options.onHandled?.();
        return this.#fail("onViolation");
      }
      this.#frames += 1;
      if (this.#frames === FRAMES_PER_TURN_MAX) this.#yield();
    }
    this.#options.onHandled?.();
  }

  #yield(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#frames = 0;
      this.#readWaiting();
    }, TURN_MS);
  }

  #readWaiting(): void {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      this.#read(next);
      if (!next.isAtEnd || this.#isClosed) return;
      this.#waiting.shift();
      this.#count(-(next.byteLength + MESSAGE_OVERHEAD_BYTES));
    }
    const onRead = this.#onRead;
    this.#onRead = undefined;
    onRead?.();
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#options.buffered.add(bytes);
  }

  #fail(reason: "onViolation" | "onOverload"): void {
    if (this.#isClosed) return;
    this.close();
    this.#options[reason]();
  }
}
