/**
 * The agent as a library:
 *
 *     import { expose } from "underpass";
 *     const tunnel = await expose({ port: 3000 });
 *     console.log(tunnel.url);
 *     await tunnel.close();
 */
import { parseHostMode } from "./host-header.ts";
import { findServer, findToken } from "./settings.ts";
import { parseTarget } from "./target.ts";
import { HttpTunnel } from "./http-tunnel.ts";
import { RejectionError } from "./tunnel-connection.ts";
import type { TunnelSettings } from "./tunnel-options.ts";

/** `Rejected` is the name that programs import. */
export { RejectionError as Rejected };

export interface ExposeOptions extends Omit<TunnelSettings, "ttl"> {
  /** The local port, or use `target`. */
  port?: number;
  /** The local server, as `underpass http` accepts it: `3000`, `host:3000`, `https://host:8443`. */
  target?: string;
  /** Default: the server of the last `underpass login`, or else one on this machine. */
  server?: string;
  /** A capability token's bytes; default: the one that `underpass login` saved. */
  token?: Uint8Array;
  /** Seconds until the tunnel expires, within what the plan allows. */
  ttlSeconds?: number;
  /** `auto` (default), `preserve`, `rewrite`, or a host name. */
  hostHeader?: string;
  /** Accept any certificate of a local https server. */
  insecureUpstream?: boolean;
}

export interface ExposedTunnel {
  /** The public URL; visitors can use it now. */
  readonly url: string;
  readonly tunnelId: string;
  /** Emits `disconnected`, `stopped`, `reconnected`, `request`, `rejected` and `notice`, as the command prints them. */
  readonly events: HttpTunnel;
  /** Ends the tunnel; requests in flight finish first. */
  close(): Promise<void>;
}

/**
 * Gives a local server a public URL. Resolves when visitors can use the URL; for a stopped tunnel, not before it is started.
 * @throws Rejected when the server rejects the tunnel permanently; TypeError when an option is wrong.
 */
export async function expose(options: ExposeOptions): Promise<ExposedTunnel> {
  const target = parseTarget(options.target ?? String(options.port ?? ""));
  if (!target) throw new TypeError("expose() needs a port, or a target such as localhost:3000");
  const server = await findServer(options.server);
  const token = options.token ? Buffer.from(options.token) : await findToken(server, undefined);
  const tunnel = new HttpTunnel({
    target,
    server,
    token,
    hostMode: parseHostMode(options.hostHeader ?? "auto"),
    insecureUpstream: options.insecureUpstream ?? false,
    settings: { ...options, ttl: options.ttlSeconds },
  });
  return new Promise((resolve, reject) => {
    tunnel.once("rejected", (rejection: RejectionError) => reject(rejection));
    tunnel.once("ready", (welcome) => {
      const { url, tunnelId } = welcome;
      resolve({ url, tunnelId, events: tunnel, close: () => tunnel.close() });
    });
    tunnel.start();
  });
}
