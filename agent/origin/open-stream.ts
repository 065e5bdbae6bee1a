import { FLAG } from "../../protocol/wire/frames.ts";
import type { Stream, Wire } from "../wire.ts";
import { HttpStream } from "./http-stream.ts";
import type { OriginServer } from "./origin.ts";
import { WebSocketStream } from "./socket-stream.ts";

/** Forwards a request or a WebSocket of a visitor to the local server. */
export function openStream(
  origin: OriginServer,
  wire: Wire,
  id: number,
  head: string[],
  flags: number,
): Stream {
  if (flags & FLAG.socket) return new WebSocketStream(origin, wire, id, head);
  return new HttpStream(origin, wire, id, head, flags);
}
