/** Rows that are many: deleting an organization tells of everything that it had. */

/** One statement: PostgreSQL takes 65,535 values in it. */
const INSERT_MAX_ROWS = 1_000;

/** In order, as many as one INSERT takes. */
export function chunks<Row>(rows: Row[]): Row[][] {
  const count = Math.ceil(rows.length / INSERT_MAX_ROWS);
  return Array.from({ length: count }, (_, at) =>
    rows.slice(at * INSERT_MAX_ROWS, (at + 1) * INSERT_MAX_ROWS),
  );
}
