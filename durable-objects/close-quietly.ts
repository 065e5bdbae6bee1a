/** Closes a socket that may already be closed. */
export function closeQuietly(socket: WebSocket, code?: number, reason?: string): void {
  try {
    if (code === undefined) socket.close();
    else socket.close(code, reason);
  } catch {
    // The socket was closed by this side before.
  }
}

/**
 * Answers a received Close frame, which the hibernation API does not do. Codes 1006 and 1015 mean that no Close
 * frame was received, 1005 that it had no code.
 */
export function answerClose(socket: WebSocket, code: number, reason: string): void {
  if (code === 1005) closeQuietly(socket);
  else if (code !== 1006 && code !== 1015) closeQuietly(socket, code, reason);
}
