/**
 * Sockets that reuse one read buffer each. Node.js otherwise allocates 64 KiB for every read, and reads once more after
 * `pause`. Measured on a long transfer through relay and agent, this halves the processor time (0.9 s a gigabyte
 * instead of 1.7), and a stalled stream holds no more than its buffer and the next one.
 */
import {
  connect as connectTcp,
  Socket,
  type IpcNetConnectOpts,
  type SocketConstructorOpts,
  type TcpNetConnectOpts,
} from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { freeBytes } from "../shared/bytes.ts";

/** A buffer starts small and grows while reads fill it: most connections never need more. */
const BUFFER_MIN_BYTES = 4 * 1024;
const BUFFER_MAX_BYTES = 256 * 1024;
/** All buffers of the process together, beyond the smallest size of each. */
const GROWN_BUFFERS_MAX_BYTES = 8 * 1024 * 1024;
/**
 * Bytes that a socket reads before others have their turn. libuv reads a full buffer up to 32 times in a turn of the event loop,
 * and what a receiver does with the bytes can take long.
 */
const TURN_MAX_BYTES = BUFFER_MAX_BYTES;
/** One growth takes at most this fraction of the remaining budget, so that it lasts for many streams. */
const GROWTH_MAX_PART = 1 / 16;

/**
 * Receives the bytes that were read. They are valid until it returns, or, if it returns false (which stops reading),
 * until `socket.resume()`.
 */
type ReceiveBytes = (bytes: Uint8Array) => boolean;

let grownBytes = 0;
const readers = new WeakMap<Duplex, SocketReader>();

class SocketReader {
  receive: ReceiveBytes | undefined;
  #buffer = allocate(BUFFER_MIN_BYTES);
  /** Whether a receiver may still use the bytes that were read last. */
  #isHeld = false;
  #socket: Socket | undefined;
  /** What full buffers have brought since the last turn of the others. */
  #turnBytes = 0;
  #isYielding = false;

  /** The option `onread` of `net.connect` and `tls.connect`. */
  get onread() {
    return {
      // Called after each read for the buffer of the next one.
      buffer: () => this.#buffer,
      callback: (length: number, buffer: Uint8Array) => this.#read(length, buffer),
    };
  }

  attach(socket: Socket): Socket {
    readers.set(socket, this);
    this.#socket = socket;
    // A socket starts reading when it is connected unless it is paused.
    socket.pause();
    return socket.once("close", () => this.#resize(BUFFER_MIN_BYTES));
  }

  #read(length: number, buffer: Uint8Array): boolean {
    const { receive } = this;
    this.#isYielding = false;
    const shouldContinue = receive?.(buffer.subarray(0, length)) ?? false;
    this.#isHeld = !shouldContinue || receive !== this.receive;
    // The socket got a new receiver meanwhile, which decides whether the socket reads on.
    if (receive !== this.receive) return true;
    // It grows even while `receive` holds the bytes: a write to TLS always ends in a later turn, so they are held each time.
    const isFull = length === buffer.length;
    if (isFull && length < BUFFER_MAX_BYTES) this.#resize(length * 4);
    this.#turnBytes = isFull ? this.#turnBytes + length : 0;
    if (!shouldContinue || this.#turnBytes < TURN_MAX_BYTES) return shouldContinue;
    this.#yield();
    return false;
  }

  /** Reads on after the other sockets, unless it was paused or has read meanwhile. */
  #yield(): void {
    this.#turnBytes = 0;
    this.#isYielding = true;
    setImmediate(() => {
      if (this.#isYielding && !this.#socket!.isPaused()) this.#socket!.resume();
    });
  }

  #resize(bytes: number): void {
    const size = Math.min(bytes, BUFFER_MAX_BYTES);
    const growth = size - this.#buffer.length;
    if (growth > (GROWN_BUFFERS_MAX_BYTES - grownBytes) * GROWTH_MAX_PART && growth > 0) return;
    grownBytes += growth;
    // Node.js collects garbage after some tens of megabytes of it, and short connections make that much in seconds.
    if (!this.#isHeld) freeBytes(this.#buffer);
    this.#buffer = allocate(size);
  }
}

/** In an ArrayBuffer of its own. */
function allocate(bytes: number): Uint8Array<ArrayBuffer> {
  return Buffer.allocUnsafeSlow(bytes);
}

/** Like `net.connect`, paused, for `setReceiver`. */
export function connectSocket(options: IpcNetConnectOpts | TcpNetConnectOpts): Socket {
  const reader = new SocketReader();
  return reader.attach(connectTcp({ ...options, onread: reader.onread }));
}

/**
 * Like `tls.connect`, paused, for `setReceiver`. It is read in the usual way, without `onread`: Node.js would decrypt all
 * records that have arrived into the same buffer, one after the other, even if `onread` has stopped reading.
 */
export function connectTlsSocket(options: ConnectionOptions & { allowHalfOpen: true }): Socket {
  return connectTls(options).pause();
}

/**
 * The same for a socket that a server accepted: returns a new, paused Socket for its connection; the old one must no longer
 * be used. Node.js has no public API for this, so if the handle has an unexpected shape (or belongs to TLS), the
 * socket itself is returned and is read in the usual way.
 */
export function adoptSocket(socket: Socket): Socket {
  const { _handle: handle } = socket as unknown as { _handle: TcpHandle | null };
  const isUnknown = "encrypted" in socket || typeof handle?.readStop !== "function";
  if (isUnknown || socket.destroyed || socket.writableLength > 0) return socket.pause();
  handle.readStop();
  handle.reading = false;
  (socket as unknown as { _handle: TcpHandle | null })._handle = null;
  socket.destroy();
  const reader = new SocketReader();
  const options = { handle, allowHalfOpen: true, pauseOnCreate: true, onread: reader.onread };
  return reader.attach(new Socket(options as unknown as SocketConstructorOpts));
}

interface TcpHandle {
  reading: boolean;
  readStop(): number;
}

/**
 * Passes the bytes that the socket reads to `receive` from now on. If an earlier receiver is being called right now, it
 * must have paused the socket; `resume()` starts it again.
 */
export function setReceiver(socket: Duplex, receive: ReceiveBytes): void {
  const reader = readers.get(socket);
  if (reader) {
    reader.receive = receive;
    return;
  }
  socket.removeAllListeners("data");
  const take = (chunk: Buffer): void => {
    const shouldContinue = receive(chunk);
    if (!shouldContinue && socket.listeners("data").includes(take)) socket.pause();
  };
  socket.on("data", take);
}
