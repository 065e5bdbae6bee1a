/** Lists of the API, which have one page of rows after another. */
import { LIST_MAX_ROWS } from "../../protocol/limits.ts";
import { load } from "./session.ts";

/** A longer list is shown without its oldest rows. */
const LIST_PAGES_MAX = 10;

/** @param path without a query. @returns the rows of all pages, newest first. */
export async function loadList<Entry extends { id: string }>(
  path: string,
  signal: AbortSignal,
): Promise<Entry[]> {
  const rows: Entry[] = [];
  for (let page = 0; page < LIST_PAGES_MAX; page += 1) {
    const last = rows.at(-1);
    const query = last === undefined ? "" : `?${new URLSearchParams({ after: last.id })}`;
    const loaded = await load<Entry[]>(path + query, signal);
    rows.push(...loaded);
    if (loaded.length < LIST_MAX_ROWS) break;
  }
  return rows;
}

/** While a list is empty, the page waits for its first entry. */
const EMPTY_LIST_RELOAD_MS = 3_000;
const LIST_RELOAD_MS = 30_000;

/** For the `refetchInterval` of a query. */
export function getListReloadMs(rows: readonly unknown[] | undefined): number {
  return rows?.length === 0 ? EMPTY_LIST_RELOAD_MS : LIST_RELOAD_MS;
}
