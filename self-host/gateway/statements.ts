/**
 * Runs queries as prepared statements named by their text: PostgreSQL parses and plans each of them once a
 * connection. The least recently used goes when there are too many.
 */
import pg from "pg";
import type { PostgresConnection } from "./postgres-connection.ts";

/** Statements that each connection keeps prepared; the least recently used goes first. */
const GATEWAY_PREPARED_MAX_STATEMENTS = 200;

export interface Query {
  text: string;
  params: unknown[];
  arrayMode: boolean;
}

/** Of each connection: names by text. */
const statements = new WeakMap<PostgresConnection, Map<string, string>>();
let lastName = 0;

/** Values stay as PostgreSQL writes them: whoever asked knows the types. */
const rawText = { getTypeParser: () => (value: unknown) => value };

export async function runQuery(
  backend: PostgresConnection,
  { text, params, arrayMode }: Query,
): Promise<pg.QueryResult | pg.QueryArrayResult> {
  const names = getStatementNames(backend);
  const name = names.get(text) ?? `u${++lastName}`;
  // To the end of the map: the first is the least recently used.
  names.delete(text);
  names.set(text, name);
  if (names.size > GATEWAY_PREPARED_MAX_STATEMENTS) await evictOldest(backend, names);
  const query = { name, text, values: params, types: rawText };
  try {
    if (!arrayMode) return await backend.query(query);
    return await backend.query({ ...query, rowMode: "array" });
  } catch (error) {
    if (isStalePlan(error)) names.delete(text);
    throw error;
  }
}

/** A table changed since the statement was prepared. Nothing was done: outside a transaction, try again. */
export function isStalePlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.routine === "RevalidateCachedQuery";
}

async function evictOldest(backend: PostgresConnection, names: Map<string, string>): Promise<void> {
  for (const [text, name] of names) {
    names.delete(text);
    await backend.deallocate(name);
    return;
  }
}

function getStatementNames(backend: PostgresConnection): Map<string, string> {
  const known = statements.get(backend);
  if (known) return known;
  const names = new Map<string, string>();
  statements.set(backend, names);
  return names;
}
