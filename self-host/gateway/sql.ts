/**
 * `POST /sql`, the HTTP mode of Neon's driver: one query, or several in one transaction. Values are sent in
 * PostgreSQL's text format (`Neon-Raw-Text-Output`), the only one that the driver requests.
 */
import type { IncomingHttpHeaders } from "node:http";
import pg from "pg";
import { z } from "zod";
import { parseJson } from "../../shared/json.ts";
import { getErrorMessage } from "../../shared/error-message.ts";
import { SQLSTATE } from "./postgres-protocol.ts";
import { type GatewayResponse, buildErrorResponse, buildFatalErrorResponse } from "./response.ts";
import {
  type ConnectionPool,
  type ConnectionRequest,
  NoConnectionError,
  type PooledConnection,
} from "./connection-pool.ts";
import { type PostgresConnection, isConnectionLost } from "./postgres-connection.ts";
import { isStalePlan, type Query, runQuery } from "./statements.ts";

const GATEWAY_BATCH_MAX_QUERIES = 1_000;

const SqlQuery = z.object({
  query: z.string(),
  params: z.array(z.unknown()).default([]),
  arrayMode: z.boolean().optional(),
});
const Batch = z.object({ queries: z.array(SqlQuery).max(GATEWAY_BATCH_MAX_QUERIES) });
const Body = z.union([SqlQuery, Batch]);

const ISOLATION_LEVELS: Record<string, string> = {
  ReadUncommitted: "read uncommitted",
  ReadCommitted: "read committed",
  RepeatableRead: "repeatable read",
  Serializable: "serializable",
};

export async function handleSql(
  pool: ConnectionPool,
  request: ConnectionRequest,
  headers: IncomingHttpHeaders,
  text: string,
): Promise<GatewayResponse> {
  if (headers["neon-raw-text-output"] !== "true") {
    return buildErrorResponse(400, "the header Neon-Raw-Text-Output must be true");
  }
  const body = Body.safeParse(parseJson(text)).data;
  if (!body) return buildErrorResponse(400, "the body must be {query, params} or {queries}");
  try {
    return await pool.use(request, (connection) => runBody(connection, headers, body));
  } catch (error) {
    if (!(error instanceof NoConnectionError)) throw error;
    return buildFatalErrorResponse(SQLSTATE.tooManyConnections, error.message);
  }
}

async function runBody(
  connection: PooledConnection,
  headers: IncomingHttpHeaders,
  body: z.output<typeof Body>,
): Promise<GatewayResponse> {
  const arrayMode = headers["neon-array-mode"] === "true";
  const toQuery = (one: z.output<typeof SqlQuery>): Query => ({
    text: one.query,
    params: one.params,
    arrayMode: one.arrayMode ?? arrayMode,
  });
  let isBroken = false;
  try {
    if ("query" in body) return buildOkResponse(await runSingle(connection, toQuery(body)));
    const begin = buildBeginStatement(headers);
    if (begin === undefined) return buildErrorResponse(400, "unknown isolation level");
    const results = await runBatch(connection, begin, body.queries.map(toQuery));
    return { ...buildOkResponse({ results }), headers: echoBatchHeaders(headers) };
  } catch (error) {
    isBroken = isConnectionLost(error);
    return toErrorResponse(error);
  } finally {
    connection.release(isBroken);
  }
}

async function runSingle(connection: PostgresConnection, query: Query): Promise<object> {
  try {
    return toResult(await runQuery(connection, query), query);
  } catch (error) {
    if (!isStalePlan(error)) throw error;
    return toResult(await runQuery(connection, query), query);
  }
}

/**
 * Selects of a transaction that only reads, at PostgreSQL's default isolation, each see what is committed when they start: the
 * same as without a transaction, which would take two more statements.
 */
const SELECT = /^select /i;
const READ_ONLY_BEGIN = "begin isolation level read committed read only";

async function runBatch(
  connection: PostgresConnection,
  begin: string,
  queries: Query[],
): Promise<object[]> {
  const needsTransaction =
    begin !== READ_ONLY_BEGIN || !queries.every(({ text }) => SELECT.test(text));
  if (needsTransaction) return runTransaction(connection, begin, queries);
  const results: object[] = [];
  for (const query of queries) results.push(await runSingle(connection, query));
  return results;
}

async function runTransaction(
  connection: PostgresConnection,
  begin: string,
  queries: Query[],
): Promise<object[]> {
  await connection.query(begin);
  try {
    const results: object[] = [];
    for (const query of queries) results.push(toResult(await runQuery(connection, query), query));
    await connection.query("commit");
    return results;
  } catch (error) {
    if (!isConnectionLost(error)) await connection.query("rollback");
    throw error;
  }
}

function buildBeginStatement(headers: IncomingHttpHeaders): string | undefined {
  const parts = ["begin"];
  const level = headers["neon-batch-isolation-level"];
  if (level !== undefined) {
    const isolation = Object.hasOwn(ISOLATION_LEVELS, String(level))
      ? ISOLATION_LEVELS[String(level)]
      : undefined;
    if (isolation === undefined) return undefined;
    parts.push(`isolation level ${isolation}`);
  }
  if (headers["neon-batch-read-only"] === "true") parts.push("read only");
  if (headers["neon-batch-deferrable"] === "true") parts.push("deferrable");
  return parts.join(" ");
}

const BATCH_HEADERS = [
  "neon-batch-isolation-level",
  "neon-batch-read-only",
  "neon-batch-deferrable",
];

function echoBatchHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    BATCH_HEADERS.filter((name) => headers[name] !== undefined).map((name) => [
      name,
      String(headers[name]),
    ]),
  );
}

function toResult(
  { fields, command, rowCount, rows }: pg.QueryResult | pg.QueryArrayResult,
  { arrayMode }: Query,
): object {
  // Only what the driver reads: the rest of a field's description would be most of a short answer.
  const read = fields.map(({ name, dataTypeID }) => ({ name, dataTypeID }));
  return { fields: read, command, rowCount, rows, rowAsArray: arrayMode };
}

function buildOkResponse(value: object): GatewayResponse {
  return { status: 200, body: JSON.stringify(value) };
}

function toErrorResponse(error: unknown): GatewayResponse {
  if (!(error instanceof pg.DatabaseError)) {
    return buildFatalErrorResponse(SQLSTATE.connectionFailure, getErrorMessage(error));
  }
  // `message` is not an own enumerable property of the error, unlike the fields from PostgreSQL.
  return { status: 400, body: JSON.stringify({ ...error, message: error.message }) };
}
