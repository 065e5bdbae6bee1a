/** The query of a page's URL as plain strings: `?status=5xx`, not the JSON that the router writes by default. */
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";

/** The parameters by name. */
export type QueryParameters = Record<string, string>;

export function parseSearch(query: string): QueryParameters {
  return Object.fromEntries(new URLSearchParams(query));
}

/** Values that are empty or undefined are left out. */
export function stringifySearch(search: Record<string, unknown>): string {
  const entries = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(entries.map(([name, value]) => [name, String(value)]));
  return query.size > 0 ? `?${query}` : "";
}

/** The parameters of the page's URL. */
export function useQueryParameters(): QueryParameters {
  return useSearch({ strict: false });
}

interface SetQueryOptions {
  /** The button "Back" of the browser returns to the URL before this change. */
  isNewEntry?: boolean;
}

type SetQueryParameters = (changes: QueryParameters, options?: SetQueryOptions) => void;

/** Changes some parameters of the page's URL, by default without a new entry in the history. Empty ones are removed. */
export function useSetQueryParameters(): SetQueryParameters {
  const navigate = useNavigate();
  return (changes, { isNewEntry = false } = {}) =>
    void navigate({
      to: ".",
      search: (current: QueryParameters) => ({ ...current, ...changes }),
      replace: !isNewEntry,
      resetScroll: false,
    });
}

/** The `:id` of the page's path. */
export function usePathId(): string {
  const { id } = useParams({ strict: false }) as { id?: string };
  return id ?? "";
}
