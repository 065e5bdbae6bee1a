/** Closes a socket that may be closed already. */
export function closeQuietly(socket: WebSocket, code?: number, reason?: string): void {
  try {
    if (code === undefined) socket.close();
    else socket.close(code, reason);
  } catch {
    // Closed by us already.
  }
}

/**
 * A Close that came is answered, which the hibernation API does not do. These codes mean that none came, or
 * one without a code.
 */
export function answerClose(socket: WebSocket, code: number, reason: string): void {
  if (code === 1005) closeQuietly(socket);
  else if (code !== 1006 && code !== 1015) closeQuietly(socket, code, reason);
}
