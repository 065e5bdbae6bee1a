/**
 * The agent as a library:
 *
 *     import { expose } from "underpass";
 *     await using tunnel = await expose({ port: 3000 });
 *     console.log(tunnel.url);
 */
import { parseHostMode } from "./host-header.ts";
import { findServer, findToken } from "./settings.ts";
import { HandlerDispatcher, type RequestHandler } from "./origin/handler.ts";
import { createLocalTarget, parseTarget, type Target } from "./target.ts";
import { HttpTunnel } from "./http-tunnel.ts";
import { RejectionError } from "./tunnel-connection.ts";
import type { TunnelSettings } from "./tunnel-options.ts";

/** `Rejected` is the name that programs import. */
export { RejectionError as Rejected };

export interface ExposeOptions extends Omit<TunnelSettings, "ttl"> {
  /** The port of the local server. Give one of `port`, `origin` and `fetch`. */
  port?: number;
  /** The local server, as `underpass http` accepts it: `3000`, `host:3000`, `https://host:8443`. */
  origin?: string;
  /**
   * A function that answers the requests, so that no port is open. It gets each request with its public URL, and
   * `request.signal` aborts when the visitor has left. Bodies are streamed in both directions, no faster than the other
   * side reads. When it throws, the visitor gets a 502 page that does not contain the error, and `handlerError` is
   * emitted. It accepts no WebSockets.
   */
  fetch?: RequestHandler;
  /** Default: the server of the last `underpass login`, or else one on this machine. */
  server?: string;
  /** A capability token: its bytes, or those in base64. Default: the one that `underpass login` saved. */
  token?: Uint8Array | string;
  /** A file with the token's bytes. */
  tokenFile?: string;
  /** Seconds until the tunnel expires, within what the plan allows. */
  ttlSeconds?: number;
  /** `auto` (default), `preserve`, `rewrite`, or a host name. */
  hostHeader?: string;
  /** Accept any certificate of a local https server. */
  insecureUpstream?: boolean;
  /** Ends the tunnel when it aborts; a call of `expose()` that is still waiting rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface ExposedTunnel extends AsyncDisposable {
  /** The public URL; visitors can use it now. */
  readonly url: string;
  readonly tunnelId: string;
  /**
   * Emits, with typed arguments:
   *
   * - `request`: a request has ended; `problem` says why the local server did not answer.
   * - `streamOpened` and `streamClosed`: a WebSocket or an event stream; its counts grow while it is open.
   * - `disconnected`, `retrying` and `reconnected`: the agent reconnects without giving up.
   * - `stopped`: the tunnel's owner stopped it; it continues when it is started again.
   * - `rejected`: the server rejected the tunnel permanently.
   * - `closed`: the tunnel has ended, after `close()`, the signal or a rejection; nothing follows.
   * - `handlerError`: the function `fetch` threw; without a listener the error is printed.
   * - `latency`: how many milliseconds the server took to answer the latest heartbeat.
   * - `notice`: a message for the developer.
   */
  readonly events: HttpTunnel;
  /** Ends the tunnel; requests in flight finish first. */
  close(): Promise<void>;
}

/**
 * Gives a local server, or a function, a public URL. Resolves when visitors can use the URL; for a stopped tunnel, not before
 * it is started.
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
export async function expose(options: ExposeOptions): Promise<ExposedTunnel> {
  const { signal } = options;
  const target = getTarget(options);
  signal?.throwIfAborted();
  const server = await findServer(options.server);
  const token = await getToken(options, server);
  signal?.throwIfAborted();
  const tunnel = new HttpTunnel({
    target,
    server,
    token,
    hostMode: parseHostMode(options.hostHeader ?? "auto"),
    insecureUpstream: options.insecureUpstream ?? false,
    settings: { ...options, ttl: options.ttlSeconds },
  });
  return new Promise((resolve, reject) => {
    const close = (): Promise<void> => tunnel.close();
    const abort = (): void => {
      reject(signal?.reason as Error);
      void close();
    };
    signal?.addEventListener("abort", abort, { once: true });
    tunnel.once("closed", () => signal?.removeEventListener("abort", abort));
    tunnel.once("rejected", (rejection: RejectionError) => reject(rejection));
    tunnel.once("ready", ({ url, tunnelId }) =>
      resolve({ url, tunnelId, events: tunnel, close, [Symbol.asyncDispose]: close }),
    );
    tunnel.start();
  });
}

/** @throws TypeError unless the options name exactly one target. */
function getTarget({ port, origin, fetch: handler }: ExposeOptions): Target {
  const given = [port, origin, handler].filter((option) => option !== undefined);
  if (given.length !== 1) throw new TypeError("expose() needs one of port, origin and fetch");
  if (handler)
    return createLocalTarget("function", (context) => new HandlerDispatcher(handler, context));
  const target = parseTarget(origin ?? String(port));
  if (target) return target;
  throw new TypeError(
    `expose() can't use ${origin ?? port}; give a port, host:port or http(s) URL`,
  );
}

/** @throws TypeError when there is a second token; SettingsError when there is none. */
async function getToken({ token, tokenFile }: ExposeOptions, server: URL): Promise<Buffer> {
  if (token === undefined) return findToken(server, tokenFile);
  if (tokenFile !== undefined) throw new TypeError("expose() needs token or tokenFile, not both");
  return typeof token === "string" ? Buffer.from(token, "base64") : Buffer.from(token);
}
