/** Lists of the API, which have one page of rows after another. */
import { LIST_MAX_ROWS } from "../../protocol/limits.ts";
import { load } from "./session.ts";

/** A longer list is shown without its oldest rows. */
const LIST_PAGES_MAX = 10;

/** A row of a list. That of a member has the id of the user. */
type ListRow = { id: string } | { user_id: string };

/** @param path without a query. @returns the rows of all pages, newest first. */
export function loadList<Entry extends ListRow>(
  path: string,
  signal: AbortSignal,
): Promise<Entry[]> {
  return loadPages((position) => {
    const query = new URLSearchParams(position).toString();
    return load<Entry[]>(query === "" ? path : `${path}?${query}`, signal);
  });
}

/** The parameters of a request for the page that follows the row with this id. */
type Position = Record<string, never> | { after: string };

/** @returns the rows of all pages, newest first. */
export async function loadPages<Entry extends ListRow>(
  loadPage: (position: Position) => Promise<Entry[]>,
): Promise<Entry[]> {
  const rows: Entry[] = [];
  for (let page = 0; page < LIST_PAGES_MAX; page += 1) {
    const last = rows.at(-1);
    const loaded = await loadPage(last === undefined ? {} : { after: getId(last) });
    rows.push(...loaded);
    if (loaded.length < LIST_MAX_ROWS) break;
  }
  return rows;
}

function getId(row: ListRow): string {
  return "id" in row ? row.id : row.user_id;
}

/** While a list is empty, the page waits for its first entry. */
const EMPTY_LIST_RELOAD_MS = 3_000;
export const LIST_RELOAD_MS = 30_000;

/** For the `refetchInterval` of a query. */
export function getListReloadMs(rows: readonly unknown[] | undefined): number {
  return rows?.length === 0 ? EMPTY_LIST_RELOAD_MS : LIST_RELOAD_MS;
}
