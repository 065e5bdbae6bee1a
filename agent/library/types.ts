/**
 * The library as programs see it. The package contains this file as `dist/expose.d.ts`, so it only declares, and imports
 * nothing but types of Node.js.
 */
import type { EventEmitter } from "node:events";

/** Answers a visitor's request. `request.signal` aborts when the visitor has left. */
export type RequestHandler = (request: Request) => Response | Promise<Response>;

export interface ExposeOptions {
  /** The port of the local server. Give one of `port`, `origin` and `fetch`. */
  port?: number;
  /**
   * What to share, as `underpass http` accepts it: `3000`, `host:3000`, `https://host:8443`, `unix:/run/app.sock`,
   * `./public`.
   */
  origin?: string;
  /** Shows what a shared directory without index.html contains. */
  directoryListing?: boolean;
  /**
   * A function that answers the requests, so that no port is open. It gets each request with its public URL, and
   * `request.signal` aborts when the visitor has left. Bodies are streamed in both directions, no faster than the other
   * side reads. When it throws, the visitor gets a 502 page that does not contain the error, and `handlerError` is
   * emitted. It accepts no WebSockets.
   */
  fetch?: RequestHandler;
  /** Default: the server of the last `underpass login`, or else one on this machine. */
  server?: string;
  /** A capability token: its bytes, or those in base64. Default: `UNDERPASS_TOKEN`, or the one that `underpass login` saved. */
  token?: Uint8Array | string;
  /** A file with the token, as bytes or in base64. */
  tokenFile?: string;
  /**
   * A file with certificates in PEM format: those of a company's CA, or of the server's own. This tunnel trusts them besides
   * those that Node.js trusts.
   */
  caFile?: string;
  /** The tunnel's name; a random one when left out. */
  subdomain?: string | undefined;
  /** The public URL, instead of `subdomain`: a name of the service, or your own verified domain. */
  url?: string;
  /** `user:password`: visitors need this password; `off` removes it. Left out, the tunnel keeps the password that it has. */
  basicAuth?: string;
  /**
   * The traffic policy, as in a file for `--policy-file`; `off` removes it. Left out, the tunnel keeps the policy that
   * it has.
   */
  policy?: { actions: object[] } | "off";
  /** Added to each request to the local server, in place of what the visitor sent under these names. */
  headers?: Record<string, string>;
  /** The slug of the project that the tunnel belongs to. */
  project?: string | undefined;
  /** Seconds until the tunnel expires, within what the plan allows. */
  ttlSeconds?: number;
  /** `auto` (default), `preserve`, `rewrite`, or a host name. */
  hostHeader?: string;
  /** Accept any certificate of a local https server. */
  insecureUpstream?: boolean;
  /**
   * Serve `subdomain` or `url` together with other agents that ask for the same and have the same token. Each request goes to
   * the one with the fewest in flight.
   */
  pool?: boolean;
  /** Ends the tunnel when it aborts; a call of `expose()` that is still waiting rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface PublicTunnel {
  /** The public URL; visitors can use it now. */
  readonly url: string;
  readonly tunnelId: string;
}

export interface ExposedTunnel extends PublicTunnel, AsyncDisposable {
  /** What happens to the tunnel. */
  readonly events: EventEmitter<TunnelEvents>;
  /** Ends the tunnel; requests in flight finish first. */
  close(): Promise<void>;
}

/** The events of a tunnel with their arguments. */
export interface TunnelEvents {
  /** Visitors can use the URL: `expose` resolves. */
  ready: [tunnel: PublicTunnel];
  /** A request was answered or failed, a visitor's WebSocket was accepted, or a visitor left before the response was complete. */
  request: [request: RequestReport];
  /** A WebSocket was accepted, or an event stream began; its counts grow while it is open. */
  streamOpened: [request: RequestReport];
  streamClosed: [request: RequestReport];
  /** How many milliseconds the server took to answer the latest heartbeat. */
  latency: [ms: number];
  /** The connection to the server was lost; the agent reconnects without giving up. */
  disconnected: [reason: string];
  /** A connection could not be opened; another attempt follows in `inMs` milliseconds. */
  retrying: [reason: string, inMs: number];
  reconnected: [tunnel: PublicTunnel];
  /**
   * This many visits did not reach the tunnel since the last such event: the gates, the rate limit or maintenance
   * refused them.
   */
  refused: [visits: number];
  /**
   * What visitors must bring has changed, by any member of the organization: some of `password`, `sign_in`, `token`,
   * `addresses` and `policy`. A later server may have further ones.
   */
  gates: [gates: { readonly names: readonly string[] }];
  /** Visitors get the maintenance page, or no longer. */
  maintenance: [isOn: boolean];
  /** A local server that had accepted connections refuses them: visitors wait for it up to 3 s. Or it accepts them again. */
  localServer: [isListening: boolean];
  /** The tunnel's owner stopped it; it continues when it is started again. */
  stopped: [explanation: string];
  /** How many agents serve the tunnel as a pool, this one included: when it has changed. */
  pool: [agents: number];
  /** The server rejected the tunnel permanently. */
  rejected: [rejection: Rejection];
  /** The function `fetch` threw, or its response's body failed. Without a listener the error is printed. */
  handlerError: [error: unknown];
  /** The tunnel has ended: it was closed, its signal aborted, or the server rejected it. Nothing follows. */
  closed: [rejection: Rejection | undefined];
  /** A message for the developer. */
  notice: [message: string];
}

/** A WebSocket and an event stream stay open after the head of the response. */
export type RequestKind = "request" | "events" | "websocket";

/** A visitor's request. The byte and message counts of a stream grow until it is closed. */
export interface RequestReport {
  /** The request's number at this agent. */
  readonly id: number;
  /**
   * The id that the visitor gets in `underpass-request-id`, and that the captured request has. undefined: an earlier version
   * of the server, or a replay by this agent.
   */
  readonly requestId: string | undefined;
  kind: RequestKind;
  readonly method: string;
  readonly path: string;
  /** 0 until the local server has answered, and if the request ended before that. */
  status: number;
  /** Until the end of the response, or until a WebSocket was accepted. */
  durationMs: number;
  /** Why the local server did not answer, or did not finish its response. */
  problem: string | undefined;
  /**
   * Why the request ended early without a problem of the local server: the visitor left, or the connection to the Underpass
   * server ended.
   */
  abortReason: string | undefined;
  /** Bytes of the visitor's body or messages. */
  bytesIn: number;
  /** Bytes of the local server's body or messages. */
  bytesOut: number;
  /** WebSocket messages of both sides; 0 for everything else. */
  messages: number;
}

/** The server rejected the tunnel permanently. */
export interface Rejection extends Error {
  /** The name of a close code or an error code of the API, such as `unauthorized`. */
  readonly reason: string;
  /** Says more than `reason`, such as `port_taken` for `duplicate_name`. undefined where the reason says it all. */
  readonly subcode: string | undefined;
}

/** The class of the errors that tell that the server rejected a tunnel permanently, for `instanceof`. */
export declare const Rejected: new (reason: string, explanation: string) => Rejection;
export type Rejected = Rejection;

/**
 * Gives a local server, or a function, a public URL. Resolves when visitors can use the URL; for a stopped tunnel, not before
 * it is started. While the server can't be reached it keeps trying, and emits one process warning.
 *
 *     const tunnel = await expose({ port: 3000, subdomain: "shop" });
 *     tunnel.events.on("request", ({ method, path, status }) => console.log(method, path, status));
 *
 *     await expose({ fetch: (request) => new Response(`You asked for ${request.url}`) });
 *
 *     await expose({ origin: "https://localhost:8443", signal: AbortSignal.timeout(60_000) });
 *
 * @throws Rejected when the server rejects the tunnel permanently; TypeError when an option is wrong; the signal's reason.
 */
export declare function expose(options: ExposeOptions): Promise<ExposedTunnel>;
