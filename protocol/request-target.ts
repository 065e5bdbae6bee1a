/**
 * The request target (RFC 9112 §3.2) exactly as the visitor sent it: `new URL` would decode and normalize it. The
 * platform's URL is `scheme://authority` followed by the target's own bytes.
 */
export function getRequestTarget(url: string): string {
  const slash = url.indexOf("/", url.indexOf("//") + 2);
  return slash < 0 ? "/" : url.slice(slash);
}

/** @returns the query without its question mark; null: the target has none. */
export function splitTarget(target: string): { path: string; query: string | null } {
  const mark = target.indexOf("?");
  if (mark < 0) return { path: target, query: null };
  return { path: target.slice(0, mark), query: target.slice(mark + 1) };
}

/** The inverse of `splitTarget`. */
export function joinTarget(path: string, query: string | null | undefined): string {
  return query === null || query === undefined ? path : `${path}?${query}`;
}
