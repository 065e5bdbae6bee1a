/** WebSockets in the Worker and in Durable Objects: whether they are open, and how they are closed (RFC 6455 §7). */
import { isSendableCloseCode } from "../protocol/websocket-close.ts";

export function isOpen(socket: WebSocket): boolean {
  return socket.readyState === WebSocket.OPEN;
}

/**
 * The response that gives the client its end of the connection (RFC 6455 §4.2.2), with the subprotocol of the request: the
 * API passes only the one that it has chosen.
 */
export function answerUpgrade(request: Request, client: WebSocket): Response {
  const protocol = request.headers.get("sec-websocket-protocol");
  const headers = protocol === null ? undefined : { "sec-websocket-protocol": protocol };
  return new Response(null, { status: 101, webSocket: client, headers });
}

/** Closes a socket that may already be closed. */
export function closeQuietly(socket: WebSocket, code?: number, reason?: string): void {
  try {
    if (code === undefined) socket.close();
    else socket.close(code, reason);
  } catch {
    // The socket was closed by this side before.
  }
}

export interface SocketClose {
  code: number;
  reason: string;
}

/**
 * Reads how the platform reports the end of a connection. A Close frame that RFC 6455 does not allow becomes the Close
 * that answers it: 1002 for a code that may not be sent (§7.4), 1007 for a reason that is not UTF-8 (§8.1), which the
 * platform has repaired.
 * @param isClean whether a Close frame was received. Without one, the code is 1006.
 */
export function parseClose(code: number, reason: string, isClean: boolean): SocketClose {
  if (!isClean) return { code: 1006, reason: "" };
  if (code === 1005) return { code, reason: "" };
  if (!isSendableCloseCode(code))
    return { code: 1002, reason: "a close code that may not be sent" };
  if (reason.includes("\uFFFD")) return { code: 1007, reason: "a reason that is not UTF-8" };
  return { code, reason };
}

/**
 * Answers a received Close frame, which the platform leaves to us (`web_socket_manual_reply_to_close`). A lost connection gets
 * no answer.
 */
export function answerClose(socket: WebSocket, { code, reason }: SocketClose): void {
  if (code === 1005) closeQuietly(socket);
  else if (code !== 1006) closeQuietly(socket, code, reason);
}
