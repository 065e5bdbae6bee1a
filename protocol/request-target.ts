/**
 * The request target (RFC 9112 §3.2) as the visitor sent it: `new URL` would decode, fold and collapse it. The
 * platform gives the URL as `scheme://authority` followed by the target's own bytes.
 */
export function getRequestTarget(url: string): string {
  const slash = url.indexOf("/", url.indexOf("//") + 2);
  return slash < 0 ? "/" : url.slice(slash);
}
