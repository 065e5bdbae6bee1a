/** Whether each address of the server accepts TCP connections. */
import { isIPv6 } from "node:net";
import { explainError } from "../error-message.ts";
import type { ResolvedRoute } from "./dns-check.ts";
import { findErrorCode, ok, problem, skipped, warning, type Outcome } from "./check.ts";
import { getPort } from "../outgoing/address.ts";
import { openTcp, type Route } from "./route.ts";
import { formatHostAndPort } from "../../shared/hosts.ts";

/** How many addresses of a name are tried. */
const ADDRESSES_MAX = 8;
const CONNECT_MAX_MS = 2_500;

interface Attempt {
  address: string;
  result: string;
  isConnected: boolean;
  isUnreachable: boolean;
}

export async function checkTcp(route: ResolvedRoute, signal: AbortSignal): Promise<Outcome<Route>> {
  if (route.proxy) return skipped("the proxy connects to the server", route);
  const port = getPort(route.server);
  const addresses = route.addresses.slice(0, ADDRESSES_MAX);
  const tried = `connecting to ${addresses.map((address) => formatHostAndPort(address, port)).join(", ")}`;
  const attempts = await Promise.all(
    addresses.map((address) => attempt(address, port, AbortSignal.any([signal, timeout()]))),
  );
  const result = attempts.map(({ address, result: outcome }) => `${address} ${outcome}`).join("; ");
  const connected = attempts.filter(({ isConnected }) => isConnected);
  if (connected.length === 0) return problem(tried, result, adviseOnFailure(attempts, route));
  // Without IPv6 on this machine the system refuses at once, which delays nothing.
  const slow = attempts.filter(({ isConnected, isUnreachable }) => !isConnected && !isUnreachable);
  if (slow.length === 0) return ok(tried, result, route);
  const family = slow.every(({ address }) => isIPv6(address)) ? " (IPv6)" : "";
  return warning(
    tried,
    result,
    `The agent uses the other addresses, but connecting may take longer. Ask the operator of the server or of this network about ${slow.map(({ address }) => address).join(", ")}${family}.`,
    route,
  );
}

async function attempt(address: string, port: number, signal: AbortSignal): Promise<Attempt> {
  const startedAtMs = performance.now();
  try {
    (await openTcp(address, port, signal)).destroy();
    const tookMs = Math.round(performance.now() - startedAtMs);
    return {
      address,
      result: `accepts connections (${tookMs} ms)`,
      isConnected: true,
      isUnreachable: false,
    };
  } catch (error) {
    const code = findErrorCode(error);
    const isUnreachable = ["ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL"].includes(code);
    const result = isUnreachable
      ? "can't be reached from this network"
      : code === "ECONNREFUSED"
        ? "refuses connections"
        : code === "ETIMEDOUT" || signal.aborted
          ? "does not answer"
          : `failed: ${explainError(error)}`;
    return { address, result, isConnected: false, isUnreachable };
  }
}

function adviseOnFailure(attempts: Attempt[], { server }: Route): string {
  if (attempts.some(({ result }) => result === "refuses connections")) {
    return `Nothing listens there: check the address ${server.origin}, and that the server is running.`;
  }
  if (attempts.some(({ result }) => result === "does not answer")) {
    return `A firewall drops the packets, or the server is down. Ask for outgoing connections to port ${getPort(server)}, or set HTTPS_PROXY if this network has a proxy.`;
  }
  return "Check that this machine is online, and its VPN if it uses one.";
}

function timeout(): AbortSignal {
  return AbortSignal.timeout(CONNECT_MAX_MS);
}
