/** Creates the connections of visitors, which share a queue, metrics and bounds of their WebSockets. */
import { CONNECTION_KEY_FIELD } from "../../protocol/front-proxy/connection-key.ts";
import { getAddressGroup } from "../../shared/address-group.ts";
import { SourceMemory } from "../../shared/bounds/source-memory.ts";
import { CF_BLOB_HEADER } from "../../shared/client-address.ts";
import type { RequestTrace } from "../../shared/tracing/request-trace.ts";
import { PROGRAM_MESSAGES_MAX_BYTES, VISITOR_MESSAGES_MAX_BYTES } from "./limits.ts";
import type { FrontProxyMetrics } from "./metrics/front-proxy-metrics.ts";
import type { FairQueue } from "./queue/fair-queue.ts";
import { findForwardedSource } from "./queue/forwarded-source.ts";
import type { Upstreams } from "./upstream.ts";
import { VisitorConnection } from "./visitor-connection.ts";
import type { Visitor } from "./visitor-connection-options.ts";
import type { OpenWebSocket } from "./websockets/open-web-socket.ts";
import { FrameAllowance } from "./websockets/frame-allowance.ts";

interface ConnectionFactoryOptions extends Upstreams {
  /** Whether all visitors come through the operator's own proxy. */
  isBehindProxy: boolean;
  metrics: FrontProxyMetrics;
  trace: RequestTrace;
  /** For requests. */
  queue: FairQueue;
  frameQueues: Record<OpenWebSocket["kind"], FairQueue>;
}

interface NewConnection {
  /** The visitor's address. */
  address: string;
  /** Random. It names the connection in requests of the Worker. */
  key: string;
  idleMaxMs: number;
  onClose: () => void;
}

export class ConnectionFactory {
  readonly #options: ConnectionFactoryOptions;
  /** workerd stores up to 32 MiB of each WebSocket message until its last byte arrives, and has no bound for all of them. */
  readonly #messages = {
    visitor: new SourceMemory(VISITOR_MESSAGES_MAX_BYTES),
    program: new SourceMemory(PROGRAM_MESSAGES_MAX_BYTES),
  };

  constructor(options: ConnectionFactoryOptions) {
    this.#options = options;
  }

  /** @param visitor paused. */
  create(visitor: Visitor, { address, key, idleMaxMs, onClose }: NewConnection): VisitorConnection {
    const { isBehindProxy, apiHosts, upstreamPaths, metrics, trace, queue } = this.#options;
    const { frameQueues } = this.#options;
    const cfBlob = JSON.stringify({ clientIp: address, [CONNECTION_KEY_FIELD]: key });
    // Behind a proxy each connection counts as a source of its own: the key occurs once.
    const source = isBehindProxy ? key : getAddressGroup(address);
    return new VisitorConnection(visitor, {
      apiHosts,
      upstreamPaths,
      metrics,
      trace,
      queue,
      cfBlobField: `${CF_BLOB_HEADER}: ${cfBlob}\r\n`,
      connectionKey: key,
      idleMaxMs,
      findSource: (head) => (isBehindProxy ? findForwardedSource(head) : source),
      createWebSocketLimits: (kind, resume) => ({
        reservation: this.#messages[kind].createReservation(source),
        allowance: new FrameAllowance(frameQueues[kind], source, resume),
      }),
      onClose,
    });
  }
}
