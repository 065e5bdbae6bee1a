/** Connections to what answers the requests: workerd, and the relay. */
import type { Socket } from "node:net";
import { readAfterFailedWrites } from "../../sockets/early-response.ts";
import { connectSocket, setReceiver } from "../../sockets/socket-reader.ts";
import type { Destination } from "./metrics/front-proxy-metrics.ts";
import { isForRelay } from "./relay/agent-connection.ts";
import type { RequestHead } from "./http1/request-head.ts";

export interface Upstreams {
  /** The host names of the API; all others lead to tunnels. */
  apiHosts: ReadonlySet<string>;
  /** The paths of the sockets. No agent is passed on to the relay without one. */
  upstreamPaths: Record<Exclude<Destination, "relay">, string> & { relay?: string };
}

export function findDestination(
  head: RequestHead,
  { apiHosts, upstreamPaths }: Upstreams,
): Destination {
  if (head.host === null || !apiHosts.has(head.host)) return "tunnel";
  return upstreamPaths.relay !== undefined && isForRelay(head) ? "relay" : "api";
}

/** @param receive called with the bytes that arrive. @returns a socket whose errors are only visible by its end. */
export function connectUpstream(
  destination: Destination,
  { upstreamPaths }: Upstreams,
  receive: (bytes: Uint8Array) => boolean,
): Socket {
  const upstream = connectSocket({ path: upstreamPaths[destination]!, allowHalfOpen: true });
  // The relay ends a connection with a visitor that is gone, also while the agent is still sending.
  if (destination !== "relay") readAfterFailedWrites(upstream, Infinity);
  upstream.on("error", () => undefined);
  setReceiver(upstream, receive);
  return upstream.resume();
}
