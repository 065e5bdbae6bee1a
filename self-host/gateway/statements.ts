/**
 * Runs queries as prepared statements, so that PostgreSQL parses and plans each query once per connection. When a
 * connection has too many, the least recently used one is deallocated.
 */
import pg from "pg";
import type { PostgresConnection } from "./postgres-connection.ts";

/** Prepared statements of one connection. */
const GATEWAY_PREPARED_MAX_STATEMENTS = 200;

export interface Query {
  text: string;
  params: unknown[];
  arrayMode: boolean;
}

/** For each connection, the names of its prepared statements by query text. */
const statements = new WeakMap<PostgresConnection, Map<string, string>>();
let lastName = 0;

/** Values stay in PostgreSQL's text format: the driver parses them. */
const rawText = { getTypeParser: () => (value: unknown) => value };

export async function runQuery(
  connection: PostgresConnection,
  { text, params, arrayMode }: Query,
): Promise<pg.QueryResult | pg.QueryArrayResult> {
  const names = getStatementNames(connection);
  const name = names.get(text) ?? `u${++lastName}`;
  // Moved to the end of the map, whose first entry is the least recently used.
  names.delete(text);
  names.set(text, name);
  if (names.size > GATEWAY_PREPARED_MAX_STATEMENTS) await evictOldest(connection, names);
  const query = { name, text, values: params, types: rawText };
  try {
    if (!arrayMode) return await connection.query(query);
    return await connection.query({ ...query, rowMode: "array" });
  } catch (error) {
    if (isStalePlan(error)) names.delete(text);
    throw error;
  }
}

/** A table changed after the statement was prepared. Nothing was executed: outside a transaction, try again. */
export function isStalePlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.routine === "RevalidateCachedQuery";
}

async function evictOldest(
  connection: PostgresConnection,
  names: Map<string, string>,
): Promise<void> {
  const [oldest] = names;
  if (!oldest) return;
  const [text, name] = oldest;
  names.delete(text);
  await connection.deallocate(name);
}

function getStatementNames(connection: PostgresConnection): Map<string, string> {
  const known = statements.get(connection);
  if (known) return known;
  const names = new Map<string, string>();
  statements.set(connection, names);
  return names;
}
