/** Opens connections to a local web server: over TCP with or without TLS, or to a Unix socket. */
import { isIP } from "node:net";
import { buildConnector } from "undici";
import { stripBrackets } from "../../shared/hosts.ts";
import { ORIGIN_CONNECT_MAX_MS } from "../limits.ts";
import { getAttemptMaxMs, getLookup, type Target } from "../origin/target.ts";

export function buildHttpConnector(
  target: Target,
  { insecureUpstream }: { insecureUpstream: boolean },
): buildConnector.connector {
  return buildConnector({
    timeout: ORIGIN_CONNECT_MAX_MS,
    rejectUnauthorized: !insecureUpstream,
    lookup: getLookup(target) as never,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: getAttemptMaxMs(target),
    allowH2: false,
    socketPath: target.socketPath ?? null,
  });
}

/** For a connection that belongs to no request yet. */
export function toConnectOptions({ scheme, host, port }: Target): buildConnector.Options {
  const hostname = stripBrackets(host);
  // TLS names no addresses (RFC 6066 §3).
  const servername = isIP(hostname) ? "" : hostname;
  return { hostname, protocol: `${scheme}:`, port: String(port), servername };
}

/** Opens a connection, as for a request, and closes it. @returns why that failed, or null. */
export function tryToConnect(
  target: Target,
  options: { insecureUpstream: boolean },
): Promise<Error | null> {
  const connect = buildHttpConnector(target, options);
  return new Promise((resolve) => {
    connect(toConnectOptions(target), (...[error, socket]) => {
      socket?.destroy();
      resolve(error);
    });
  });
}
