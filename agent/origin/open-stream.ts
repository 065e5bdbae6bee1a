import { FLAG } from "../../protocol/wire/frames.ts";
import type { Stream, Wire } from "../tunnel/wire.ts";
import { HttpStream } from "./http-stream.ts";
import type { OriginServer } from "./origin.ts";
import { WebSocketStream } from "./socket-stream.ts";

/**
 * Forwards a request or a WebSocket of a visitor to the local server.
 * @returns null for a request when all connections to the local server are in use.
 */
export function openStream(
  origin: OriginServer,
  wire: Wire,
  id: number,
  head: string[],
  flags: number,
): Stream | null {
  const isSocket = (flags & FLAG.socket) !== 0;
  if (isSocket && origin.acceptsWebSockets) return new WebSocketStream(origin, wire, id, head);
  if (origin.isFull) return null;
  // A target that accepts no WebSockets answers the handshake like any GET, and the tunnel forwards that as its refusal.
  if (isSocket) return new HttpStream(origin, wire, id, head, flags | FLAG.end);
  return new HttpStream(origin, wire, id, head, flags);
}
