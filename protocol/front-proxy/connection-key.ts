/**
 * Names a visitor's connection to the front proxy of a self-hosted server. It is random and sent with each request of the
 * connection, and the visitor never learns it: so the edge and a tunnel's object can tell the front proxy something about
 * the connection, and the other way round.
 */

/** The key's field in what the front proxy reports as `request.cf`. */
export const CONNECTION_KEY_FIELD = "connectionKey";

/** @param cf a request's information from the platform. @returns null when it comes from no front proxy. */
export function getConnectionKey(cf: unknown): string | null {
  const key = ((cf ?? {}) as Record<string, unknown>)[CONNECTION_KEY_FIELD];
  return typeof key === "string" ? key : null;
}

/** Where the front proxy ends a connection whose response can't be completed: `DELETE`. */
export function toConnectionPath(key: string): string {
  return `/connections/${key}`;
}

/** Where the front proxy tells which visitors have left: `POST` of keys, answered with those that no connection has. */
export const DEPARTED_PATH = "/connections/departed";

/** One to a line. */
export function formatKeys(keys: readonly string[]): string {
  return keys.join("\n");
}

export function parseKeys(text: string): string[] {
  return text.split("\n").filter(Boolean);
}
