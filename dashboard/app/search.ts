/** The query of a page's URL as plain strings: `?status=5xx`, not the JSON that the router writes by default. */
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";

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

/** The query of the page's URL. */
export function useQueryParameters(): Search {
  return useSearch({ strict: false });
}

/** Changes some parameters of the page's URL, without a new entry in the history. Empty ones are removed. */
export function useSetQueryParameters(): (changes: Search) => void {
  const navigate = useNavigate();
  return (changes) =>
    void navigate({
      to: ".",
      search: (current: Search) => ({ ...current, ...changes }),
      replace: true,
      resetScroll: false,
    });
}

/** The `:id` of the page's path. */
export function usePathId(): string {
  const { id } = useParams({ strict: false }) as { id?: string };
  return id ?? "";
}
