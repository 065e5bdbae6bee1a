/** Splits long lists of rows: the deletion of an organization writes an event for everything that it had. */

/** Per statement, in which PostgreSQL accepts 65,535 values. */
const INSERT_MAX_ROWS = 1_000;

/** Splits the rows, in order, into groups. @param maxRows of a group: by default as many as fit into one INSERT. */
export function splitIntoChunks<Row>(rows: Row[], maxRows = INSERT_MAX_ROWS): Row[][] {
  const count = Math.ceil(rows.length / maxRows);
  return Array.from({ length: count }, (_, at) => rows.slice(at * maxRows, (at + 1) * maxRows));
}
