/** The proxy that the environment names for the server: whether it is used, reached, and lets the agent through. */
import { getPort } from "../outgoing/address.ts";
import {
  findProxy,
  findProxyVariable,
  formatProxy,
  openThroughProxy,
  ProxyError,
} from "../outgoing/proxy.ts";
import { ok, problem, type Outcome } from "./check.ts";
import type { Route } from "./route.ts";
import type { Settings } from "./settings-check.ts";

export async function checkProxy(settings: Settings, signal: AbortSignal): Promise<Outcome<Route>> {
  const { server, authorities } = settings;
  let tried = "reading HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY";
  try {
    const proxy = findProxy(server);
    const route = { ...settings, proxy };
    if (!proxy) return ok(tried, describeDirect(server), route);
    const target = `${server.hostname}:${getPort(server)}`;
    tried = `connecting to ${target} through ${formatProxy(proxy)}`;
    (await openThroughProxy(proxy, server, authorities, signal)).destroy();
    return ok(tried, `${formatProxy(proxy)} connects to ${target}`, route);
  } catch (error) {
    if (!(error instanceof ProxyError)) throw error;
    const advice = error.advice.charAt(0).toUpperCase() + error.advice.slice(1);
    return problem(tried, error.problem, `${advice}.`);
  }
}

function describeDirect(server: URL): string {
  const variable = findProxyVariable(server);
  return variable === undefined
    ? "none is set: connections are direct"
    : `${variable} is set, but NO_PROXY excludes this server: connections are direct`;
}
