/** The local server: the one address that the agent forwards to, and its pool of connections. */
import type { Socket } from "node:net";
import { Pool, type buildConnector, type Dispatcher } from "undici";
import { ORIGIN_CONNECTIONS_MAX, ORIGIN_HEADERS_MAX_BYTES } from "../limits.ts";
import {
  buildHttpConnector,
  toConnectOptions,
  tryToConnect,
} from "../local-server/http-connector.ts";
import { RestartWait, type Done } from "../local-server/restart-wait.ts";
import type { RequestReport } from "../library/types.ts";
import { addHeaders } from "./added-headers.ts";
import { HostHeader } from "./host-header.ts";
import type { StoredRequests } from "./stored-requests.ts";
import type { OriginOptions } from "./origin-options.ts";
import { correctParsers } from "./response-parser.ts";
import { describeNotListening } from "./origin-error.ts";
import { getWebOrigin, type LocalDispatcher, type Target } from "./target.ts";
import { MINUTE_MS } from "../../shared/time.ts";
import { readAfterFailedWrites } from "../../sockets/early-response.ts";

/** Longer than any long poll (10 minutes). */
const ORIGIN_RESPONSE_MAX_MS = 15 * MINUTE_MS;

interface OriginEvents {
  onRequestFinished(request: RequestReport): void;
  /** A WebSocket was accepted, or an event stream began. */
  onStreamOpened(request: RequestReport): void;
  onStreamClosed(request: RequestReport): void;
  /** Nothing accepted the connection for a request. */
  onUnreachable(): void;
  /** A local server that accepted connections refuses them now, or accepts them again. */
  onListeningChanged(isListening: boolean): void;
  /** A message for the user. */
  onNotice(message: string): void;
  /** A target without an address failed while it answered a request. */
  onLocalError(error: unknown): void;
}

export class OriginServer {
  readonly target: Target;
  readonly hostHeader: HostHeader;
  /** The tunnel's public origin; set by the first welcome. */
  publicOrigin = "";
  /** Set while requests are stored for replays. */
  storedRequests: StoredRequests | undefined;
  readonly #options: OriginOptions;
  readonly #connect: buildConnector.connector;
  readonly #restart: RestartWait;
  readonly #dispatcher: LocalDispatcher;
  #wasCheckedForTls = false;
  /** Requests that use a connection or wait for one to open. */
  #openRequests = 0;
  #reportCount = 0;
  readonly #events: OriginEvents;

  constructor(target: Target, options: OriginOptions, events: OriginEvents) {
    this.target = target;
    // Without an address there is no other host name to send.
    const hostMode = target.createDispatcher ? "preserve" : (options["host-header"] ?? "auto");
    this.hostHeader = new HostHeader(hostMode, target);
    this.#options = options;
    this.#events = events;
    this.#restart = new RestartWait((isListening) => events.onListeningChanged(isListening));
    this.#connect = buildHttpConnector(target, { insecureUpstream: this.#insecureUpstream });
    this.#dispatcher = target.createDispatcher
      ? target.createDispatcher({
          getPublicOrigin: () => this.publicOrigin,
          onError: (error) => events.onLocalError(error),
        })
      : createPool(target, (connectOptions, callback) =>
          this.#restart.connect<Socket>(
            (done) => this.#connect(connectOptions, done),
            (...[error, socket]) => {
              if (error) return callback(error, null);
              readAfterFailedWrites(socket);
              callback(null, socket);
            },
          ),
        );
  }

  /** Whether all connections are in use. A request would wait in the pool, without a limit and without an error. */
  get isFull(): boolean {
    return this.#openRequests >= ORIGIN_CONNECTIONS_MAX;
  }

  get #insecureUpstream(): boolean {
    return this.#options["insecure-upstream"] ?? false;
  }

  get acceptsWebSockets(): boolean {
    return this.target.createDispatcher === undefined;
  }

  /** Changes the header pairs of a visitor's request in place. */
  rewriteRequest(pairs: string[]): void {
    this.hostHeader.rewriteRequest(pairs);
    addHeaders(pairs, this.#options.header ?? []);
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    let isOpen = true;
    const end = (): void => {
      if (isOpen) this.#openRequests -= 1;
      isOpen = false;
    };
    this.#openRequests += 1;
    try {
      this.#dispatcher.dispatch(options, {
        ...handler,
        onComplete(trailers) {
          end();
          handler.onComplete?.(trailers);
        },
        onError(error) {
          end();
          handler.onError?.(error);
        },
      });
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Opens a connection for a WebSocket. @returns a function that ends the wait for a local server that restarts. */
  connect(done: Done<Socket>): () => void {
    const options = toConnectOptions(this.target);
    return this.#restart.connect<Socket>((attempted) => this.#connect(options, attempted), done);
  }

  createReport({
    kind,
    method,
    path,
    requestId,
  }: Pick<RequestReport, "kind" | "method" | "path" | "requestId">): RequestReport {
    this.#reportCount += 1;
    return {
      id: this.#reportCount,
      requestId,
      kind,
      method,
      path,
      status: 0,
      durationMs: 0,
      problem: undefined,
      abortReason: undefined,
      bytesIn: 0,
      bytesOut: 0,
      messages: 0,
    };
  }

  reportRequest(request: RequestReport): void {
    this.#events.onRequestFinished(request);
  }

  reportOpenStream(request: RequestReport): void {
    this.#events.onStreamOpened(request);
  }

  reportClosedStream(request: RequestReport): void {
    this.#events.onStreamClosed(request);
  }

  reportUnreachable(): void {
    this.#events.onUnreachable();
  }

  notify(message: string): void {
    this.#events.onNotice(message);
  }

  /** @returns why the local server accepts no connections now, in a sentence; null when it does. */
  async findConnectProblem(): Promise<string | null> {
    if (this.target.createDispatcher) return null;
    const error = await tryToConnect(this.target, { insecureUpstream: this.#insecureUpstream });
    if (!error) this.#restart.reportAccepted();
    return error && describeNotListening(error, this.target.origin);
  }

  /** The local server closed the connection of a request without an HTTP response. Once, it is checked whether it expects TLS. */
  async reportNoHttp(): Promise<void> {
    const { createDispatcher, scheme, socketPath } = this.target;
    if (this.#wasCheckedForTls || scheme === "https" || createDispatcher || socketPath) return;
    this.#wasCheckedForTls = true;
    const { host, port, origin } = this.target;
    const target: Target = { ...this.target, scheme: "https", origin: `https://${host}:${port}` };
    if (await tryToConnect(target, { insecureUpstream: true })) return;
    const isTrusted = (await tryToConnect(target, { insecureUpstream: false })) === null;
    const option = isTrusted ? "" : " with --insecure-upstream";
    this.notify(`${origin} speaks https, not http; use ${target.origin}${option}`);
  }

  /** From now on no request waits for a local server that restarts. */
  endWaits(): void {
    this.#restart.end();
  }

  async close(): Promise<void> {
    this.endWaits();
    await this.#dispatcher.destroy();
  }
}

function createPool(target: Target, connect: buildConnector.connector): Pool {
  return new Pool(getWebOrigin(target), {
    connections: ORIGIN_CONNECTIONS_MAX,
    pipelining: 1,
    headersTimeout: ORIGIN_RESPONSE_MAX_MS,
    // A stream may be silent for as long as both ends keep it open.
    bodyTimeout: 0,
    maxHeaderSize: ORIGIN_HEADERS_MAX_BYTES,
    allowH2: false,
    connect: correctParsers(connect),
  });
}
