/** What the connection of a visitor consists of, and the parts of the process that all of them share. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { RequestTrace } from "../../shared/tracing/request-trace.ts";
import type { FrontProxyMetrics } from "./metrics/front-proxy-metrics.ts";
import type { FairQueue } from "./queue/fair-queue.ts";
import type { RequestHead } from "./http1/request-head.ts";
import type { Upstreams } from "./upstream.ts";
import type { OpenWebSocket, WebSocketLimits } from "./websockets/open-web-socket.ts";

/** A socket, or a connection of a session of HTTP/2 in its place. */
export type Visitor = Duplex &
  Pick<Socket, "bytesRead" | "bytesWritten"> & {
    resetAndDestroy(): unknown;
    /** Whether the visitor is told that the rest of a request is not wanted once it has its response (RFC 9113 §8.1). */
    canStopRequests?: boolean;
  };

export interface VisitorConnectionOptions extends Upstreams {
  /** The line of `CF_BLOB_HEADER`, with its line break. */
  cfBlobField: string;
  /** What a visitor has read of a WebSocket is acknowledged with it (`protocol/front-proxy/connection-key.ts`). */
  connectionKey: string;
  /** How long it may take from the end of a response to the next complete request. */
  idleMaxMs: number;
  metrics: FrontProxyMetrics;
  trace: RequestTrace;
  queue: FairQueue;
  /** @returns the group of the address of the visitor whose request this is. */
  findSource(head: RequestHead): string;
  /** @param kind the WebSocket of a visitor or of a program. @param resume called when frames may pass again. */
  createWebSocketLimits(kind: OpenWebSocket["kind"], resume: () => void): WebSocketLimits;
  onClose(): void;
}
