import { FLAG } from "../../protocol/wire/frames.ts";
import type { RequestOpening, Stream, Wire } from "../tunnel/wire.ts";
import { HttpStream } from "./http-stream.ts";
import type { OriginServer } from "./origin-server.ts";
import { WebSocketStream } from "./websocket-stream.ts";

/**
 * Forwards a request or a WebSocket of a visitor to the local server.
 * @returns null for a request when all connections to the local server are in use.
 */
export function openStream(
  origin: OriginServer,
  wire: Wire,
  id: number,
  request: RequestOpening,
): Stream | null {
  const isSocket = (request.flags & FLAG.socket) !== 0;
  if (isSocket && origin.acceptsWebSockets) return new WebSocketStream(origin, wire, id, request);
  if (origin.isFull) return null;
  // A target that accepts no WebSockets answers the handshake like any GET, and the tunnel forwards that as its refusal.
  const flags = isSocket ? request.flags | FLAG.end : request.flags;
  return new HttpStream(origin, wire, id, { ...request, flags });
}
