/** What the connection of a visitor consists of, and the parts of the process that all of them share. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { MemoryReservation } from "../../shared/bounds/source-memory.ts";
import type { RequestTrace } from "../../shared/tracing/request-trace.ts";
import type { Destination, FrontProxyMetrics } from "./metrics/front-proxy-metrics.ts";
import type { FairQueue } from "./queue/fair-queue.ts";
import type { RequestHead } from "./request-head.ts";
import type { FrameAllowance } from "./websockets/frame-pace.ts";
import type { OpenWebSocket } from "./websockets/open-web-socket.ts";

/** A socket, or a stream of HTTP/2 in its place. */
export type Visitor = Duplex &
  Pick<Socket, "bytesRead" | "bytesWritten"> & { resetAndDestroy(): unknown };

export interface VisitorConnectionOptions {
  /** The paths of workerd's sockets. */
  upstreamPaths: Record<Destination, string>;
  /** The line of `CF_BLOB_HEADER` for workerd, with its line break. */
  cfBlobField: string;
  /** Random: what a visitor has read of a WebSocket is acknowledged with it. */
  acknowledgementKey: string;
  /** The host names of the API; all others lead to tunnels. */
  apiHosts: ReadonlySet<string>;
  /** How long it may take from the end of a response to the next complete request. */
  idleMaxMs: number;
  metrics: FrontProxyMetrics;
  trace: RequestTrace;
  queue: FairQueue;
  /** @returns the group of the address of the visitor whose request this is. */
  findSource(head: RequestHead): string;
  /** What the connection may hold of workerd's memory, as the WebSocket of a visitor or of a program. */
  createReservation(kind: OpenWebSocket["kind"]): MemoryReservation;
  /** How fast its frames pass. @param resume called when frames may pass again. */
  createAllowance(kind: OpenWebSocket["kind"], resume: () => void): FrameAllowance;
  onClose(): void;
}
