/** Splits long lists of rows: the deletion of an organization writes an event for everything that it had. */

/** Per statement, in which PostgreSQL accepts 65,535 values. */
const INSERT_MAX_ROWS = 1_000;

/** Splits the rows, in order, into groups that fit into one INSERT. */
export function splitIntoChunks<Row>(rows: Row[]): Row[][] {
  const count = Math.ceil(rows.length / INSERT_MAX_ROWS);
  return Array.from({ length: count }, (_, at) =>
    rows.slice(at * INSERT_MAX_ROWS, (at + 1) * INSERT_MAX_ROWS),
  );
}
