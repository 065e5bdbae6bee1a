/** A connection to workerd. */
import type { Socket } from "node:net";
import { readAfterFailedWrites } from "../../sockets/early-response.ts";
import { connectSocket, setReceiver } from "../../sockets/socket-reader.ts";

/** @param receive called with the bytes of workerd. @returns a socket whose errors are only visible by its end. */
export function connectUpstream(path: string, receive: (bytes: Uint8Array) => boolean): Socket {
  const upstream = connectSocket({ path, allowHalfOpen: true });
  readAfterFailedWrites(upstream, Infinity);
  upstream.on("error", () => undefined);
  setReceiver(upstream, receive);
  return upstream.resume();
}
