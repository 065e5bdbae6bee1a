/** The paths at which agents connect to a relay: they follow the path of the relay's URL, if it has one. */

/** Control connections. */
export const CONTROL_PATH = "/agent";
/** Data connections. */
export const DATA_PATH = "/stream";
/** The path of a relay's URL at the API's host, where the HTTPS of a self-hosted server leads to its relay. */
export const RELAY_PATH = "/relay";

/** @param relayUrl `ws://…` or `wss://…`. */
export function toRelayUrl(relayUrl: string, path: typeof CONTROL_PATH | typeof DATA_PATH): URL {
  const url = new URL(relayUrl);
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  return url;
}
