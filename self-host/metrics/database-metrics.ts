/** Asks PostgreSQL itself, on a connection of its own: the pools may be exhausted when the operator looks. */
import pg from "pg";
import { z } from "zod";
import { toSingleValue, type MetricFamily } from "../../shared/metrics/exposition.ts";

/** For the connection and the query together: a scrape asks each part for at most this long. */
export const DATABASE_MAX_MS = 2_000;

const count = z.coerce.number();
const Row = z.object({ connections: count, connectionsMax: count, bytes: count });

const QUERY = `select
  (select count(*) from pg_stat_activity where backend_type = 'client backend') as "connections",
  current_setting('max_connections') as "connectionsMax",
  pg_database_size(current_database()) as "bytes"`;

/** Rejects when PostgreSQL does not answer in time. */
export async function readDatabaseMetrics(databaseUrl: string): Promise<MetricFamily[]> {
  const deadlineMs = performance.now() + DATABASE_MAX_MS;
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: DATABASE_MAX_MS,
    statement_timeout: DATABASE_MAX_MS,
  });
  client.on("error", () => undefined);
  try {
    await client.connect();
    // pg has no limit for both together, and takes 0 for none.
    const query = { text: QUERY, query_timeout: Math.max(1, deadlineMs - performance.now()) };
    const { rows } = await client.query(query);
    const { connections, connectionsMax, bytes } = Row.parse(rows[0]);
    return [
      toSingleValue(
        "gauge",
        "underpass_server_postgres_connections",
        "Connections to PostgreSQL, of the gateway and of others.",
        connections,
      ),
      toSingleValue(
        "gauge",
        "underpass_server_postgres_connections_limit",
        "How many connections PostgreSQL accepts (max_connections).",
        connectionsMax,
      ),
      toSingleValue(
        "gauge",
        "underpass_server_postgres_size_bytes",
        "Size of the database on the disk.",
        bytes,
      ),
    ];
  } finally {
    // The connection may never have been made, or its other end may not answer.
    void client.end().catch(() => undefined);
  }
}
