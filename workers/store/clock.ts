/** Timestamps by the database's clock, which is the same for every isolate. */
import { sql, type SQL } from "drizzle-orm";

export function fromNow(ms: number): SQL {
  return sql`now() + ${ms} * interval '1 millisecond'`;
}

export function ago(ms: number): SQL {
  return sql`now() - ${ms} * interval '1 millisecond'`;
}
