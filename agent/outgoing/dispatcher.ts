/** Sends requests of undici's `fetch` to the server: through the proxy of the environment, and with the trusted authorities. */
import { Agent, buildConnector, type Dispatcher } from "undici";
import { findProxy, openThroughProxy } from "./proxy.ts";
import type { TrustedAuthorities } from "./trusted-authorities.ts";

/** Requests fail with a ProxyError as their cause when the proxy can't be used. */
export function createDispatcher(authorities: TrustedAuthorities | undefined): Dispatcher {
  const connect = buildConnector(authorities ? { secureContext: authorities.secureContext } : {});
  return new Agent({
    connect(options, callback) {
      openProxyTunnel(options, authorities).then(
        (tunnel) => {
          if (tunnel && options.protocol !== "https:") callback(null, tunnel.setNoDelay(true));
          else connect(tunnel ? { ...options, httpSocket: tunnel } : options, callback);
        },
        (error: Error) => callback(error, null),
      );
    },
  });
}

/** @returns undefined when the connection is direct. */
async function openProxyTunnel(
  { protocol, hostname, port }: buildConnector.Options,
  authorities: TrustedAuthorities | undefined,
) {
  const server = new URL(`${protocol}//${hostname}${port ? `:${port}` : ""}`);
  const proxy = findProxy(server);
  return proxy && openThroughProxy(proxy, server, authorities);
}
