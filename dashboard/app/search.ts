/** The query of a page's URL as plain strings: `?status=5xx`, not the JSON that the router writes by default. */
export type Search = Record<string, string>;

export function parseSearch(query: string): Search {
  return Object.fromEntries(new URLSearchParams(query));
}

/** Values that are empty or undefined are left out. */
export function stringifySearch(search: Record<string, unknown>): string {
  const entries = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(entries.map(([name, value]) => [name, String(value)]));
  return query.size > 0 ? `?${query}` : "";
}
