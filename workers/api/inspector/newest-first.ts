/** The newest captured requests of several lists. */

interface Row {
  /** Ids begin with the time: they have the same order in all lists. */
  summary: { id: string };
}

/** Reads up to `limit` rows, newest first: those older than `after`, if it is given. */
export type ReadNewest<Listed extends Row> = (limit: number, after?: string) => Promise<Listed[]>;

/** The first read of each list asks for at least this many rows, or for all that are wanted. */
const FIRST_READ_MIN_ROWS = 10;

/**
 * Reads twice as many rows as each list's equal share of the result, and then the rest of the lists that have more of the
 * newest: the newest hundred rows of a hundred lists are found in 1,000 to 1,900 rows instead of 10,000.
 *
 * @returns up to `limit` rows, newest first.
 */
export async function readNewestFirst<Listed extends Row>(
  lists: ReadNewest<Listed>[],
  limit: number,
): Promise<Listed[]> {
  const share = Math.ceil((2 * limit) / Math.max(1, lists.length));
  const firstRead = Math.min(limit, Math.max(FIRST_READ_MIN_ROWS, share));
  const starts = await Promise.all(lists.map((read) => read(firstRead)));
  const newest = sortNewestFirst(starts.flat()).slice(0, limit);
  // The oldest row of the result so far: a list that continues beyond it has no other row of the result.
  const oldestId = newest.length < limit ? "" : newest.at(-1)!.summary.id;
  const rests = await Promise.all(
    lists.map(async (read, index) => {
      const rows = starts[index]!;
      const lastId = rows.at(-1)?.summary.id;
      const isComplete = rows.length < firstRead || firstRead === limit;
      if (lastId === undefined || isComplete || lastId <= oldestId) return [];
      return read(limit - firstRead, lastId);
    }),
  );
  return sortNewestFirst([...newest, ...rests.flat()]).slice(0, limit);
}

function sortNewestFirst<Listed extends Row>(rows: Listed[]): Listed[] {
  return rows.sort((one, other) => (one.summary.id < other.summary.id ? 1 : -1));
}
