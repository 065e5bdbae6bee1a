/** Host names as visitors send them, and the names of the routes that they lead to. */
import { HOST_MAX_CHARS } from "./limits.ts";

const PORT_MAX = 65_535;

/**
 * The authority of a request URL: the text between `//` and the target. It is cut out of the URL's own text, because a
 * parser would read `a@b` as a user and a host where the Host header means a host.
 */
export function getAuthority(url: string): string {
  const start = url.indexOf("//") + 2;
  const slash = url.indexOf("/", start);
  return slash < 0 ? url.slice(start) : url.slice(start, slash);
}

/**
 * The host name of an authority: lower case, without port and without the root's dot.
 * @returns null when it is neither a host name nor an address: such a request can't be routed.
 */
export function parseHost(authority: string): string | null {
  const [suffix = "", port = ""] = /:(\d{0,5})$/.exec(authority) ?? [];
  // `new URL` would throw, also for the whole URL of such a request.
  if (Number(port) > PORT_MAX) return null;
  const host = authority.slice(0, authority.length - suffix.length).toLowerCase();
  if (host.length > HOST_MAX_CHARS + 1) return null;
  if (/^\[[0-9a-f:.]+\]$/.test(host)) return host;
  return /^[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$/.test(host) ? host.replace(/\.$/, "") : null;
}

/**
 * The name of a host's route: the label for a host of the service's own domain, the whole name for a custom domain.
 * @returns null for the service domain itself and for names more than one label below it.
 */
export function toRouteName(host: string, serviceDomain: string): string | null {
  if (host === serviceDomain) return null;
  if (!host.endsWith(`.${serviceDomain}`)) return host.includes(".") ? host : null;
  const label = host.slice(0, -serviceDomain.length - 1);
  return label.includes(".") ? null : label;
}
