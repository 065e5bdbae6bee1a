/**
 * The request target (RFC 9112 §3.2) exactly as the visitor sent it: `new URL` would decode and normalize it. The
 * platform's URL is `scheme://authority` followed by the target's own bytes.
 */
export function getRequestTarget(url: string): string {
  const slash = url.indexOf("/", url.indexOf("//") + 2);
  return slash < 0 ? "/" : url.slice(slash);
}
