import { FLAG } from "../../protocol/wire/frames.ts";
import type { Stream, Wire } from "../wire.ts";
import { HttpStream } from "./http-stream.ts";
import type { Origin } from "./origin.ts";
import { SocketStream } from "./socket-stream.ts";

/** Forwards a request or a WebSocket of a visitor to the local server. */
export function openStream(
  origin: Origin,
  wire: Wire,
  id: number,
  head: string[],
  flags: number,
): Stream {
  if (flags & FLAG.socket) return new SocketStream(origin, wire, id, head);
  return new HttpStream(origin, wire, id, head, flags);
}
