/**
 * Notices that the connection of a socket is dead while the socket is not read: because its bytes can't be passed on now, or
 * after a FIN. The system reports a reset, and a peer that keep-alive finds dead, only to a socket that is read or written.
 */
import type { Socket } from "node:net";

/** How often sockets that are not read are checked. */
const CHECK_INTERVAL_MS = 10_000;
const NOTHING = new Uint8Array();

/**
 * Destroys the socket with an error when its connection is dead, within two intervals. A peer that is slow, or pauses for
 * long, is not affected.
 * @param isPaused whether the bytes that were read last can't be passed on, so that the socket is not read.
 */
export function watchUnreadSocket(socket: Socket, isPaused: () => boolean): void {
  if (socket.closed) return;
  let checkedBytes = -1;
  const timer = setInterval(() => {
    // A slow receiver gets what has arrived before a reset: only one that has taken nothing since the last check loses it.
    const isStalled = isPaused() && socket.bytesRead === checkedBytes;
    checkedBytes = socket.bytesRead;
    if (isStalled || socket.readableEnded) destroyIfDead(socket);
  }, CHECK_INTERVAL_MS);
  socket.once("close", () => clearInterval(timer));
}

function destroyIfDead(socket: Socket): void {
  if ("encrypted" in socket) {
    // TLS ignores a write of nothing, and Node.js has no public API that asks the system again.
    const { _handle: handle } = socket as unknown as { _handle: TlsHandle | null };
    if (handle?.getpeername?.({})) socket.destroy(new Error("the connection was lost"));
  } else if (!socket.writableEnded && socket.writableLength === 0) {
    // It sends nothing, and fails if the connection is dead.
    socket.write(NOTHING);
  }
}

interface TlsHandle {
  /** @returns a negative error code when the TCP connection no longer exists. */
  getpeername?(peer: object): number | undefined;
}
